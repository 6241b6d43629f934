"""A filter of system calls that no program in a sandbox needs, and through which kernels were broken before.

All is allowed but a list, as Flatpak does: a list of what is allowed would break programs with each
new C library. It is made by libseccomp, where the machine has it.
"""

import ctypes
import ctypes.util
import errno
import functools
import os

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_MASKED_EQUAL = 7
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*: user, pid, net, ipc, uts, mount, cgroup, time
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_DENIED = (
    # other namespaces and mounts
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount"),
    *("open_tree", "fsopen", "fsconfig", "fsmount", "fspick"),
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    # the kernel's larger doors
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("keyctl", "add_key", "request_key", "open_by_handle_at", "name_to_handle_at", "lookup_dcookie"),
    # the machine itself
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff"),
    *("acct", "quotactl", "quotactl_fd", "syslog", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime"),
    *("iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "personality", "mbind", "set_mempolicy", "migrate_pages"),
    *("move_pages", "vhangup", "nfsservctl", "uselib", "ustat", "sysfs", "_sysctl"),
    # its share of the cores was given to it
    "sched_setaffinity",
)


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


@functools.cache
def filter_program() -> bytes | None:
    """The filter as bytes for the kernel; None where there is no libseccomp."""
    library = _library()
    if library is None:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ALLOW)))
    if not context:
        return None
    try:
        for name in _DENIED:
            _deny(library, context, name, errno.EPERM)
        # clone3 hides its flags from filters; where it is missing, libraries fall back to clone.
        _deny(library, context, "clone3", errno.ENOSYS)
        for bit in range(32):
            if _NEW_NAMESPACES >> bit & 1:
                _deny(library, context, "clone", errno.EPERM, _Comparison(0, _MASKED_EQUAL, 1 << bit, 1 << bit))
        for request in (_TIOCSTI, _TIOCLINUX):  # both type into a terminal
            _deny(library, context, "ioctl", errno.EPERM, _Comparison(1, _MASKED_EQUAL, 0xFFFFFFFF, request))
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _library() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("seccomp") or "libseccomp.so.2"
    try:
        return ctypes.CDLL(name, use_errno=True)
    except OSError:
        return None


def _deny(library: ctypes.CDLL, context: ctypes.c_void_p, name: str, error: int, *only: _Comparison) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number == -1:  # a newer one than this library knows
        return
    comparisons = (_Comparison * max(1, len(only)))(*only)
    action = ctypes.c_uint32(_ERRNO | error)
    # A call that this processor never had is no fault.
    library.seccomp_rule_add_array(context, action, number, ctypes.c_uint(len(only)), comparisons)


def _exported(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes | None:
    file = os.memfd_create("filter")
    try:
        if library.seccomp_export_bpf(context, file) != 0:
            return None
        return os.pread(file, os.lseek(file, 0, os.SEEK_END), 0)
    finally:
        os.close(file)
