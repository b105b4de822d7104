"""simnet: the embedded data plane. Bulk forwarding of millions of events through tables. After flow."""
