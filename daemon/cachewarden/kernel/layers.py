"""Whether something on an overlay lies in its upper layer alone: told by its file handle, Linux 6.6.

An overlay keeps to itself what is below: st_dev and st_ino of what was copied up are those of the lower
file, and its own extended attributes are hidden. A handle that need not lead back (AT_HANDLE_FID, see
`handles`) is encoded from the upper inode only where there is no lower one (fs/overlayfs/export.c,
ovl_check_encode_origin), and says so in its flags (fs/overlayfs/overlayfs.h, struct ovl_fb):

    u8 padding[3]; u8 version; u8 magic; u8 len; u8 flags; uuid_t uuid; u32 fid[]
"""

import struct
from typing import Final

_HEAD = struct.Struct("=Ii3xBBBB")  # handle_bytes, handle_type, version, magic, len, flags
_TYPE: Final = 0xF8  # OVL_FILEID_V1
_VERSION: Final = 0
_MAGIC: Final = 0xFB
_PATH_UPPER: Final = 0x04


def in_upper_layer_alone(handle: bytes) -> bool:
    """Whether a handle is that of something on an overlay of which no lower layer has anything.

    False for any other handle: also of merged directories and of files that were copied up.
    """
    if len(handle) < _HEAD.size:
        return False
    _, kind, version, magic, _, flags = _HEAD.unpack_from(handle)
    known = (kind, version, magic) == (_TYPE, _VERSION, _MAGIC)
    return known and bool(flags & _PATH_UPPER)
