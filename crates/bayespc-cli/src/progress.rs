//! Progress bars on standard error, only when somebody watches.

use std::io::IsTerminal;
use std::time::Duration;

use bayespc::model::{Control, Observer, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::interrupted;

/// A bar of `length` steps; invisible unless standard error is a terminal.
pub fn bar(what: &'static str, length: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {elapsed}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(length), target).with_style(style).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// Training, watched by a bar and stopped by Ctrl-C: what then comes back is half trained.
pub struct Watched(pub ProgressBar);

/// Steps of a bar that shows a share.
const STEPS: f64 = 1000.0;

impl Observer for Watched {
    fn update(&mut self, progress: &Progress) -> Control {
        self.0.set_length(STEPS as u64);
        self.0.set_position((STEPS * progress.share) as u64);
        let news = match (progress.loss, progress.held_out) {
            (_, Some(density)) => format!("{}, held-out density {density:.3}", progress.stage),
            (Some(loss), None) => format!("{}, loss {loss:.3}", progress.stage),
            (None, None) => progress.stage.to_string(),
        };
        if self.0.message() != news {
            self.0.set_message(news);
        }
        if interrupted() { Control::Stop } else { Control::Continue }
    }
}

/// Run a download under a bar that appears with its first byte.
pub fn downloading<T>(what: &'static str, run: impl FnOnce(&mut dyn FnMut(u64, Option<u64>)) -> T) -> T {
    let mut shown: Option<ProgressBar> = None;
    let result = run(&mut |done, total| {
        let bar = shown.get_or_insert_with(|| bar(what, total.unwrap_or(0)));
        bar.set_length(total.unwrap_or(done));
        bar.set_position(done);
    });
    if let Some(bar) = shown {
        bar.finish_and_clear();
    }
    result
}
