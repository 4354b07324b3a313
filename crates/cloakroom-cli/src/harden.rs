//! Protects the memory of the process.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

/// Disables core dumps, debugger access by the same user, new privileges and swapping.
///
/// Each step applies where the system allows it; `doctor` reports swap.
pub(crate) fn process() {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = prctl::set_dumpable(false);
    let _ = prctl::set_no_new_privs();
    // With a low limit, locking would make later allocations fail.
    if matches!(getrlimit(Resource::RLIMIT_MEMLOCK), Ok((RLIM_INFINITY, _))) {
        // Locks only pages in use: the allocator reserves a gigabyte.
        let used = MlockAllFlags::from_bits_retain(nix::libc::MCL_ONFAULT);
        let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | used);
    }
}
