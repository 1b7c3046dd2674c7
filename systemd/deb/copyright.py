"""Write the copyright file: the licence of cachewarden, and those of the libraries that it carries."""

import sys
from importlib.metadata import Distribution, distribution, distributions

_HEAD = """\
cachewarden
Copyright (C) 2026 the authors of cachewarden
License: Apache-2.0

On Debian systems, the text of the Apache License, version 2.0, is in
/usr/share/common-licenses/Apache-2.0.

The package carries these libraries below /usr/lib/cachewarden.
Their authors hold the copyright. Where a library came with a text of its
licence, that lies in its folder NAME-VERSION.dist-info there.

"""


def licence(library: Distribution) -> str:
    """As the library names its licence itself, in the newest of the three ways that there were."""
    said = library.metadata
    if short := said.get("License-Expression") or said.get("License"):
        return short.splitlines()[0]
    classes = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier", ()) if "License" in each]
    return ", ".join(classes)


mine = distribution("cachewarden").locate_file("")
carried = [each for each in distributions(path=[str(mine)]) if each.name != "cachewarden"]
sys.stdout.write(_HEAD)
for each in sorted(carried, key=lambda each: each.name.lower()):
    sys.stdout.write(f"{each.name} {each.version}: {licence(each)}\n")
