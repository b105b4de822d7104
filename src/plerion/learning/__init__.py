"""learning: from events and subscriptions to the content index that wastes least. After matching, before topology."""
