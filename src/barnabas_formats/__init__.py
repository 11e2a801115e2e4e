"""A catalogue of the formats in which programs write their logs: one file for each format."""
