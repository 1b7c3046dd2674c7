"""Hub caches that no client wrote: references, links and lists of users with anything in them."""

import os

from hypothesis import given
from hypothesis import strategies as st
from tests.daemon.layout_trees import HASH, A, B, divide, everything, link, put, repository, store

from cachewarden.layouts.hub.links import resolve, tail

REPO = b"models--o--m"
_PARTS = [
    *(REPO, b"models--s--one", b"models--s--two", b"datasets--x", b"blobs", b"snapshots", b"refs", b"trees"),
    *(
        b".no_exist",
        b".locks",
        b"main",
        b"ab",
        A,
        B,
        HASH,
        HASH + b".refs",
        HASH + b".lock",
        b"e1",
        b"common",
    ),
    *(b".huggingface-shared-blobs", b"x.incomplete", b"\xff\n", b".e.1a2b3c4d.old", A + b".json"),
]
_target = st.lists(st.sampled_from([*_PARTS, b"..", b".", b"", b"/"]), max_size=8).map(b"/".join)
_line = st.lists(st.sampled_from([*_PARTS, b"..", b""]), max_size=4).map(b"/".join) | st.binary(max_size=30)
_content = st.lists(_line, max_size=4).map(b"\n".join) | st.sampled_from([b"1\n", A, B + b"\n", b""])
_thing = st.tuples(
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=5),
    st.sampled_from(["file", "directory", "link"]),
    _content,
    _target,
)


@given(st.lists(_thing, max_size=12), _content)
def test_any_tree_is_divided_without_a_crash_and_nothing_is_lost(tmp_path_factory, things, users):
    """No path leaves the location, each name is one entry's, and all that is there is somebody's."""
    root = os.fsencode(tmp_path_factory.mktemp("any"))
    repository(root, REPO, A, B)
    payload = store(root, b"models--s--one", b"models--s--two")
    put(payload + b".refs", users)
    for parts, kind, text, target in things:
        path = root + b"/" + b"/".join(parts)
        try:
            if kind == "directory":
                os.makedirs(path, exist_ok=True)
            elif kind == "link":
                link(path, target or b"x")
            else:
                put(path, text)
        except OSError:
            continue  # something else stands there
    found = divide(root)
    assert found.layout == "hub"
    paths = [path for claim in found.claims for path in (*claim.paths, *claim.locks, *claim.husks)]
    assert all(os.path.lexists(root + b"/" + path) for path in paths)
    assert not any(path.startswith(b"/") or b".." in path.split(b"/") for path in paths)
    assert len({claim.name for claim in found.claims}) == len(found.claims)
    owned = {path for claim in found.claims for path in claim.paths} | {each.path for each in found.foreign}
    owned |= {path for each in found.shared for path in (each.path, *each.companions)}
    for path in everything(root):
        above = [path[:end] for end in range(len(path) + 1) if path[end : end + 1] in (b"/", b"")]
        # A repository that goes revision by revision leaves its emptied parts, and files beside them.
        assert not owned.isdisjoint(above) or path.split(b"/")[0].startswith((b"models--", b"datasets--")), (
            path
        )


@given(_content | st.lists(_line | st.just(b"stranger/blobs/e1"), max_size=4).map(b"\n".join))
def test_a_payload_goes_only_where_every_line_names_a_known_user(tmp_path_factory, users):
    """What the client would honour and we have no entry for keeps it."""
    root = os.fsencode(tmp_path_factory.mktemp("any"))
    payload = store(root, b"models--s--one")
    put(root + b"/stranger/file")
    put(payload + b".refs", users)
    (share,) = divide(root).shared
    try:
        users.decode()
    except UnicodeDecodeError:
        assert share.kept
    if any(line.startswith(b"stranger/blobs/") for line in users.splitlines()):
        assert share.kept


@given(st.binary(max_size=40), _target | st.binary(max_size=40))
def test_no_text_of_a_link_leads_out_of_the_location(directory, target):
    """And the last components of a text are its end."""
    end = resolve(directory.strip(b"/"), target)
    assert end is None or not (end.startswith(b"/") or end.split(b"/")[0] == b"..")
    assert target.endswith(b"/".join(tail(target, 2)))
