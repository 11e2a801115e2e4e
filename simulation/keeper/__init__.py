"""Our ZooKeeper server and its clients: generated operations, and what must be true of them."""
