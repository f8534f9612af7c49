//! Looks at the model files now and then.

use crate::app::App;
use crate::event::Event;
use crate::registry::Change;

/// Look for changes until the task is dropped.
pub async fn watch(app: App) {
    let mut ticks = tokio::time::interval(app.options().watch_every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let registry = app.clone();
        // Reading a file and deriving what its networks need takes a while.
        let Ok(changes) = tokio::task::spawn_blocking(move || registry.registry().refresh()).await else {
            continue;
        };
        for change in changes {
            app.metrics().changed(&change);
            app.options().tell(&match change {
                Change::Replaced(served) => {
                    Event::Replaced { model: served.name.clone(), version: served.version.clone() }
                }
                Change::Refused(model, error) => Event::Refused { model, error: error.to_string() },
            });
        }
    }
}
