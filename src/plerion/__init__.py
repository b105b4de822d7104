"""Publish/subscribe whose filters run inside the network."""
