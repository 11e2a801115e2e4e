"""The logs of systems: entries, templates, bursts, silent components, SSH logins."""
