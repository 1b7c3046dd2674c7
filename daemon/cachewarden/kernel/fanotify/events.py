"""What a fanotify group reports, taken apart: fanotify(7), structures of include/uapi/linux/fanotify.h.

    struct fanotify_event_metadata {     struct fanotify_event_info_fid {       struct file_handle {
        u32 event_len;                       u8  info_type; u8 pad; u16 len;        u32 handle_bytes;
        u8  vers; u8 reserved;               u64 fsid;                              i32 handle_type;
        u16 metadata_len;                    struct file_handle handle;             u8  f_handle[];
        u64 mask; i32 fd; i32 pid; }         char name[]; }  (only with a name)     }

One or more information records follow the metadata; each is padded to four bytes.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

OPEN: Final = 0x20
Q_OVERFLOW: Final = 0x4000
NO_PIDFD: Final = -1  # not asked for, or the process had ended (FAN_NOPIDFD)

_DFID_NAME, _DFID, _FID, _PIDFD = 2, 3, 1, 4  # FAN_EVENT_INFO_TYPE_…
_HANDLES = (_DFID, _DFID_NAME, _FID)
_METADATA = struct.Struct("=IBBHQii")
_INFO = struct.Struct("=BBH")
_LENGTH = struct.Struct("=I")
_NUMBER = struct.Struct("=i")
_VERSION: Final = 3  # FANOTIFY_METADATA_VERSION, unchanged since Linux 2.6.37
_HANDLE_AT: Final = 12  # in an information record: after its header and the fsid


class Event(NamedTuple):
    """One event, which stands for all alike that the kernel merged.

    `pid` is a thread group's; 0 where that process is not in our pid namespace, or is not known. `handle`
    is that of the directory of what was opened, `b""` where the kernel knows none; `name` is `b""` unless
    the group reports names. `pidfd` is the reader's to close; NO_PIDFD or another negative one is none.
    """

    mask: int
    pid: int
    handle: bytes
    name: bytes
    pidfd: int


def parse(batch: bytes) -> Iterator[Event]:
    """The events of what one read(2) returned. Raises ValueError for another version of the structure."""
    metadata, info, length_of = _METADATA.unpack_from, _INFO.unpack_from, _LENGTH.unpack_from
    at, size = 0, len(batch)
    while at < size:
        length, version, _, skip, mask, _, pid = metadata(batch, at)
        if version != _VERSION:
            raise ValueError(f"fanotify speaks version {version} here")
        handle = name = b""
        pidfd = NO_PIDFD
        record = at + skip
        at += length
        while record < at:
            kind, _, taken = info(batch, record)
            if kind in _HANDLES:
                start = record + _HANDLE_AT
                stop = start + 8 + length_of(batch, start)[0]
                handle = batch[start:stop]
                if kind == _DFID_NAME:
                    name = batch[stop : batch.index(0, stop)]
            elif kind == _PIDFD:
                pidfd = _NUMBER.unpack_from(batch, record + _INFO.size)[0]
            record += taken
        yield Event(mask, pid, handle, name, pidfd)
