"""Other people's programs that open, watch and scan files: real ones, each a process of its own.

Each is a Python program that is ready when it has said so. The listeners use fanotify in descriptor mode, as
virus scanners and auditors do: reading an event opens the file.
"""

from tests.daemon.evicting import process

_FANOTIFY = """
import ctypes, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
heard = os.open(args[1], os.O_WRONLY | os.O_CREAT)
def listen(kind, mask):
    group = libc.fanotify_init(ctypes.c_uint(kind), ctypes.c_uint(os.O_RDONLY | os.O_CLOEXEC))
    assert group >= 0, os.strerror(ctypes.get_errno())
    assert libc.fanotify_mark(group, 0x1 | 0x10, mask, -100, args[0]) == 0, os.strerror(ctypes.get_errno())
    return group
def events(group, size):
    try:
        batch = os.read(group, size)
    except OSError:      # the file of an event could not be opened: that event is lost
        return
    at = 0
    while at < len(batch):
        os.write(heard, b'.')
        length, _, _, _, mask, fd, pid = struct.unpack_from('=IBBHQii', batch, at)
        yield mask, fd, pid
        at += length
"""
# One event at a time: the file is opened, read, judged, closed. FAN_CLASS_CONTENT, FAN_OPEN_PERM.
_SCANNER = f"""{_FANOTIFY}
import threading
group = listen(0x04 | 0x1, 0x10000)
def scan():
    while True:
        for _, fd, pid in events(group, 24):
            if fd >= 0:
                try:
                    os.pread(fd, 1 << 20, 0)
                except OSError:
                    pass
                os.write(group, struct.pack('=iI', fd, 1))
                os.close(fd)
threading.Thread(target=scan, daemon=True).start()
"""
# FAN_CLASS_NOTIF, FAN_OPEN | FAN_CLOSE: looks at every file after the fact.
_AUDITOR = f"""{_FANOTIFY}
import threading
group = listen(0x1, 0x20 | 0x10 | 0x08)
def audit():
    while True:
        for _, fd, pid in events(group, 4096):
            if fd >= 0:
                os.readlink('/proc/self/fd/%d' % fd)
                os.close(fd)
threading.Thread(target=audit, daemon=True).start()
"""
# What udev, indexers and thumbnailers do: watch every directory; some open what an event names.
_WATCHER = """
import ctypes, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
group = libc.inotify_init1(0)
heard = os.open(args[1], os.O_WRONLY | os.O_CREAT)
paths = {}
for base, _, _ in os.walk(args[0]):
    paths[libc.inotify_add_watch(group, base, int(args[2]))] = base
def watch():
    while True:
        batch, at = os.read(group, 65536), 0
        while at < len(batch):
            os.write(heard, b'.')
            wd, _, _, length = struct.unpack_from('=iIII', batch, at)
            name = batch[at + 16 : at + 16 + length].rstrip(b'\\0')
            at += 16 + length
            if len(args) > 3 and name:
                try:
                    fd = os.open(os.path.join(paths.get(wd, args[0]), name), os.O_RDONLY)
                    os.close(fd)
                except OSError:
                    pass
threading.Thread(target=watch, daemon=True).start()
"""
_ALL = 0xFFF
_CHANGES = 0x8 | 0x40 | 0x80 | 0x100  # IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE


def scanner(mount_point, heard, wrap=()):
    """An on-access virus scanner on a mount. Each event adds a byte to the file `heard`, as below."""
    return process(_SCANNER, mount_point, heard, wrap=wrap)


def auditor(mount_point, heard):
    """A listener that takes descriptors of what was opened on a mount."""
    return process(_AUDITOR, mount_point, heard)


def watcher(top, heard):
    """Inotify watches on every directory, for everything."""
    return process(_WATCHER, top, heard, str(_ALL))


def indexer(top, heard):
    """Inotify watches, and whatever was written, moved or made is opened."""
    return process(_WATCHER, top, heard, str(_CHANGES), "open")


_READER = """
import threading
def read():
    while True:
        for base, _, names in os.walk(args[0]):
            for name in names:
                try:
                    with open(os.path.join(base, name), 'rb') as file: file.read()
                except OSError:
                    pass
threading.Thread(target=read, daemon=True).start()
"""


def reader(top, wrap=()):
    """Reads every file below, one after the other, closes each, and begins again."""
    return process(_READER, top, wrap=wrap)
