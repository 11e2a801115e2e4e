"""A client's address in the form that Kafka compares with the host of a rule.

Kafka compares texts, and Java has only one way to write an IPv6 address: all eight groups, without
leading zeros. So a rule for `::1` matches no client there. Here every form of an address means that
address, wherever hosts are compared; the tree and requests keep the text as it was written.
"""

from __future__ import annotations


def java_host(host: str) -> str:
    """Return an address in Java's form: IPv6 written out, and IPv4 as IPv4 even if it came through
    an IPv6 socket. A text that is not an address, such as the wildcard, is returned unchanged.
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
    # A socket for both families reports ::ffff:10.0.0.1, but rules name 10.0.0.1.
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    # Like Java's Inet6Address.getHostAddress(): no group is left out, and none has a leading zero.
    groups = ":".join(f"{int(group, 16):x}" for group in ip.exploded.split(":"))
    return f"{groups}{percent}{scope}"


def matches_no_client(host: str) -> bool:
    """Return whether no client can have this host: names and ranges are compared with addresses as
    text.
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
