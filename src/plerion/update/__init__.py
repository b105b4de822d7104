"""update: how a network gets from one state to another. Plans as data, one file a strategy. After flow."""
