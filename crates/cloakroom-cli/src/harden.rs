//! Keeping the process's memory to itself.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

/// No core files, no reading by debuggers of the same user, no new privileges, no pages in swap.
///
/// Each step is taken where the system allows it; `doctor` tells about swap.
pub(crate) fn process() {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = prctl::set_dumpable(false);
    let _ = prctl::set_no_new_privs();
    // With a small limit, locking would make later allocations fail.
    if matches!(getrlimit(Resource::RLIMIT_MEMLOCK), Ok((RLIM_INFINITY, _))) {
        // Pages that are used, and not all that was reserved: the allocator reserves a gigabyte.
        let used = MlockAllFlags::from_bits_retain(nix::libc::MCL_ONFAULT);
        let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | used);
    }
}
