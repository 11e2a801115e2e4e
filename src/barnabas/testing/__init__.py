"""Testing with a broker; see `docs/testing-faults.md` for its faults."""
