"""index: from points and boxes to bit strings (dz) and addresses. After content, before matching."""
