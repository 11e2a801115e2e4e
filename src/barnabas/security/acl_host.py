"""Converts a client's address to the form that Kafka compares with the host in a rule.

Kafka compares hosts as text, and Java writes an IPv6 address in only one form: all eight groups,
without leading zeros. In Kafka, a rule for `::1` therefore matches no client. Barnabas treats all
forms of an address as equal, but leaves the text in the tree and in requests unchanged.
"""

from __future__ import annotations


def java_host(host: str) -> str:
    """Return an address in the form in which Java writes it. An IPv6 address has all groups, and an
    IPv4 address is written as IPv4 even if an IPv6 socket reported it. Any other text, such as the
    wildcard, is returned unchanged.
    """
    if ":" not in host:
        return host
    import ipaddress  # few rules and clients need it

    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plain, percent, scope = bare.partition("%")
    try:
        ip = ipaddress.IPv6Address(plain)
    except ValueError:
        return host
    # A socket for both families reports ::ffff:10.0.0.1, but rules contain 10.0.0.1.
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    # As in Java's Inet6Address.getHostAddress(), all groups are written, without leading zeros.
    groups = ":".join(f"{int(group, 16):x}" for group in ip.exploded.split(":"))
    return f"{groups}{percent}{scope}"


def matches_no_client(host: str) -> bool:
    """Return whether no client can ever have this host.

    Names and ranges never match, because they are compared with addresses as text.
    """
    if host == "*":
        return False
    import ipaddress  # few rules and clients need it

    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return True
    return False
