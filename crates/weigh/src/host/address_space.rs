//! Whether two processes use one address space, as a vfork child and its parent do until exec.
//!
//! Source: kcmp(2) with KCMP_VM, 1 to 2 µs. It needs the right to read both processes
//! (PTRACE_MODE_READ), which their owner has. The seccomp profile of containers forbids it, and
//! kernels without CONFIG_KCMP do not have it.

/// The source of which processes use one address space.
#[derive(Debug, Clone)]
pub enum AddressSpaces {
    /// The kernel.
    Kernel,
    /// None: the files are those of another machine.
    NotAvailable,
    /// Pairs of processes set by a test.
    #[cfg(test)]
    Manual(std::rc::Rc<std::cell::RefCell<std::collections::BTreeSet<(u32, u32)>>>),
}

impl AddressSpaces {
    /// Whether two processes use one address space.
    pub fn is_shared(&self, one: u32, other: u32) -> std::io::Result<bool> {
        match self {
            AddressSpaces::Kernel => kcmp_vm(one, other),
            AddressSpaces::NotAvailable => Err(std::io::Error::from_raw_os_error(libc::ENOSYS)),
            #[cfg(test)]
            AddressSpaces::Manual(pairs) => Ok(pairs.borrow().contains(&(one, other))),
        }
    }
}

fn kcmp_vm(one: u32, other: u32) -> std::io::Result<bool> {
    /// From linux/kcmp.h.
    const KCMP_VM: libc::c_long = 1;
    let (one, other) = (libc::c_long::from(one), libc::c_long::from(other));
    let nothing: libc::c_long = 0;
    // SAFETY: kcmp takes numbers and touches no memory of ours.
    match unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, nothing, nothing) } {
        -1 => Err(std::io::Error::last_os_error()),
        order => Ok(order == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_space_is_shared_with_itself_and_not_with_a_fork() {
        let own = std::process::id();
        // Containers refuse it.
        let Ok(with_itself) = AddressSpaces::Kernel.is_shared(own, own) else { return };
        assert!(with_itself);
        // SAFETY: the child only waits to be killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: pause takes nothing.
                unsafe { libc::pause() };
            }
        }
        let with_fork = AddressSpaces::Kernel.is_shared(own, child as u32);
        // SAFETY: both take numbers, and the child is ours; its status is not wanted.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert!(!with_fork.unwrap());
    }
}
