"""controller: interests and failures in, changes to the network out. Owns state and journal; above the data planes."""
