//! The models that are served, by name; each can be replaced while others compute with it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::Error;
use crate::file::{ModelFile, Stamp};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::served::Served;

/// All models.
pub struct Registry {
    slots: BTreeMap<String, Slot>,
}

/// A file and the model that was last read from it.
struct Slot {
    file: ModelFile,
    state: RwLock<State>,
}

struct State {
    served: Arc<Served>,
    /// The file as it was last looked at, whether or not it could be used.
    seen: Stamp,
}

/// What became of a file that has changed.
pub enum Change {
    Replaced(Arc<Served>),
    Refused(String, Error),
}

impl Registry {
    /// Read all files.
    pub fn load(files: &[ModelFile]) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(Error::NoModels);
        }
        let mut slots = BTreeMap::new();
        for file in files {
            if slots.contains_key(&file.name) {
                return Err(Error::SameName { name: file.name.clone(), path: file.path.clone() });
            }
            let (served, seen) = Served::load(file)?;
            let state = RwLock::new(State { served: Arc::new(served), seen });
            slots.insert(file.name.clone(), Slot { file: file.clone(), state });
        }
        Ok(Self { slots })
    }

    /// Names of the models.
    pub fn names(&self) -> Vec<String> {
        self.slots.keys().cloned().collect()
    }

    /// All models as they are now.
    pub fn all(&self) -> Vec<Arc<Served>> {
        self.slots.values().map(Slot::current).collect()
    }

    /// The model of this name.
    pub fn find(&self, name: &str) -> Result<Arc<Served>, Problem> {
        self.slots.get(name).map(Slot::current).ok_or_else(|| {
            let names = self.slots.keys().map(String::as_str);
            let meant =
                nearest(name, names).map_or_else(String::new, |meant| format!(": is `{meant}` meant?"));
            let listed = self.names().join(", ");
            Problem::missing(format!("there is no model `{name}`{meant} (served: {listed})")).value(name)
        })
    }

    /// Look at all files once, and read those that have changed. The old model is served until the new one is ready,
    /// and after that too if the new one cannot be used.
    pub fn refresh(&self) -> Vec<Change> {
        self.slots.values().filter_map(Slot::refresh).collect()
    }
}

impl Slot {
    fn current(&self) -> Arc<Served> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).served.clone()
    }

    fn refresh(&self) -> Option<Change> {
        // A file that is away for a moment, as between removing and writing it, is looked for again.
        let now = Stamp::of(&self.file.path).ok()?;
        if now == self.state.read().unwrap_or_else(PoisonError::into_inner).seen {
            return None;
        }
        let loaded = Served::load(&self.file);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match loaded {
            Ok((served, seen)) => {
                *state = State { served: Arc::new(served), seen };
                Some(Change::Replaced(state.served.clone()))
            }
            Err(error) => {
                state.seen = now;
                Some(Change::Refused(self.file.name.clone(), error))
            }
        }
    }
}
