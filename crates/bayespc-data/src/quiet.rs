//! Panics of a dependency that are caught and said in our words: their own message is not printed.
//!
//! What is printed at a panic is decided by a hook that the whole process has. Ours is set once, on the first use, and asks
//! a flag of the thread that panics; any other panic goes to the hook that was there before.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives, or `None` if it panicked. The caller does not use again what `work` may have left half done.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(unless_quiet(std::panic::take_hook())));
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    result.ok()
}

fn unless_quiet(before: Hook) -> Hook {
    Box::new(move |panic| {
        if !QUIET.get() {
            before(panic);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Messages that reached the hook behind ours.
    static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn heard(what: &str) -> usize {
        HEARD.lock().unwrap().iter().filter(|text| text.contains(what)).count()
    }

    /// One test, since the hook belongs to the process. Panics of other tests meanwhile are printed as ever.
    #[test]
    fn only_caught_panics_are_silent() {
        assert_eq!(caught(|| 1), Some(1));
        let before = std::panic::take_hook();
        std::panic::set_hook(unless_quiet(Box::new(move |panic| {
            HEARD.lock().unwrap().push(panic.to_string());
            before(panic);
        })));

        assert_eq!(caught::<()>(|| panic!("in silence")), None);
        assert_eq!(caught(|| caught::<()>(|| panic!("in silence")).is_none() && QUIET.get()), Some(true));
        assert_eq!(heard("in silence"), 0);

        // Afterwards this thread is heard again; and another one is, even while this is silent.
        assert!(catch_unwind(|| panic!("aloud, later")).is_err());
        assert_eq!(heard("aloud, later"), 1);
        let elsewhere = caught(|| std::thread::spawn(|| panic!("aloud, elsewhere")).join().is_err());
        assert_eq!((elsewhere, heard("aloud, elsewhere")), (Some(true), 1));
    }
}
