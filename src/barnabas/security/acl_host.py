"""A client's address as Kafka compares it with the host of a rule.

Kafka compares texts, and Java writes IPv6 in one way alone: all eight groups, without leading
zeros. So a rule for `::1` matches no client there. Here every way to write an address means that
address, wherever hosts are compared; what the tree holds and requests say stays as it was written.
"""

from __future__ import annotations


def java_host(host: str) -> str:
    """An address in Java's form: IPv6 written out, and IPv4 as such even if it came through an IPv6
    socket. A text that is no address stays, as the wildcard does."""
    if ":" not in host:
        return host
    import ipaddress  # few rules and clients need it

    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plain, percent, scope = bare.partition("%")
    try:
        ip = ipaddress.IPv6Address(plain)
    except ValueError:
        return host
    # A socket for both families reports ::ffff:10.0.0.1, and rules are about 10.0.0.1.
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    # As Java's Inet6Address.getHostAddress(): no group is left out, and none has a leading zero.
    groups = ":".join(f"{int(group, 16):x}" for group in ip.exploded.split(":"))
    return f"{groups}{percent}{scope}"


def matches_no_client(host: str) -> bool:
    """No client has such a host: names and ranges are compared as texts, with addresses."""
    if host == "*":
        return False
    import ipaddress  # few rules and clients need it

    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return True
    return False
