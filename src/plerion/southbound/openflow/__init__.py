"""openflow: Plerion's tables on real switches, by OpenFlow 1.3. `driver` is the door; only `codec` knows os_ken."""
