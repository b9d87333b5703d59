# SPDX-License-Identifier: Apache-2.0
"""URLs that test how keys of captures are made."""


def plain_url(draw):
    """A URL as most are, or nearly."""
    pick = draw.choice
    host = ".".join(pick(("www", "www1", "example", "a-b", "x" * 63, "1and1", "uk"))
                    for _ in range(draw.randint(0, 3)))
    host += ("." if host else "") + pick(("com", "org", "co.uk", "localhost", "www", "x1"))
    path = "".join("/" + pick(("a", "Page.HTML", "~u", "a,b", "v=1", "x;y", "x.aspx", "", ".", "a..b"))
                   for _ in range(draw.randint(0, 4)))
    query = "&".join(pick(("a", "B", "sid", "")) + pick(("", "=", "=2", "=A/b", "=1=0"))
                     for _ in range(draw.randint(0, 4)))
    return pick(("http://", "https://")) + host + path + pick(("", "/")) + (
        pick(("", "?")) + query)


def random_url(draw):
    """A URL of parts that canonicalisation treats in many ways."""
    pick = draw.choice
    if draw.random() < 0.5:
        return plain_url(draw)
    scheme = pick(("http://", "http://", "https://", "HTTP://", "ftp://", "http:/", "dns:", "urn:"))
    user = pick(("",) * 12 + ("user@", "user:word@"))
    host = ".".join(draw.choices(
        ("www", "www2", "com", "org", "example", "EXAMPLE", "a-b", "-a", "b-", "x_y", "1", "127",
         "co", "uk", "xn--bcher-kva", "b\u00fccher", "a" * 63, "a" * 64), k=pick((1, 2, 2, 3, 3, 4))))
    if host.replace(".", "").isdigit():
        # Not to be looked up.
        host += ".org"
    port = pick(("",) * 9 + (":80", ":443", ":8080", ":"))
    pieces = ("a", "B", "page.html", "..", ".", "", ".x", "%41", "%2F", "%zz", "a b", "\u00e4", "~u",
              "(s)", "(A(012345678901234567890123))", "x.aspx", "jsessionid=1", "a;jsessionid="
              + "0" * 32, "*", "!", "'", '"', "<>", "|", "^", "a,b", "c:d", "e@f", "$", "+", "&", "=")
    path = "".join("/" + pick(pieces) for _ in range(pick((0, 1, 1, 2, 2, 3, 4))))
    names = ("a", "b", "B", "sid", "PHPSESSID", "jsessionid", "cfid", "cftoken", "ASPSESSIONIDABCDEFGH",
             "x%20", "\u00fc", "", "z?")
    query = "&".join(
        pick(names) + pick(("", "=", "=1", "=A", "==", "=" + "0" * 32, "=a/b", "=a+b", "=%26", "=a|b"))
        for _ in range(pick((0, 0, 1, 2, 3))))
    return (scheme + user + host + port + path + pick(("", "", "?")) + ("?" + query if query else "")
            + pick(("",) * 8 + ("#part", "#", " ", "\t")))
