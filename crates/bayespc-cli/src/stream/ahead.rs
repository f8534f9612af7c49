//! Reading one chunk ahead: while one is learned, the next is read and parsed by another thread. Chunks come in the
//! same order, with the same rows: nothing but time changes.

use std::sync::mpsc::{Receiver, sync_channel};

use bayespc_data::{Batch, RowBatches};

/// Chunks as they come.
pub type Chunks = Receiver<bayespc_data::Result<Batch>>;

/// `work` on chunks that are read ahead; it may end before they do. Gives the reader back, which knows what it left out.
pub fn read_ahead<R>(mut batches: RowBatches<'_>, work: impl FnOnce(&Chunks) -> R) -> (RowBatches<'_>, R) {
    std::thread::scope(|scope| {
        // One waits here, one is being read.
        let (send, receive) = sync_channel(1);
        let reader = scope.spawn(move || {
            for batch in batches.by_ref() {
                if send.send(batch).is_err() {
                    break;
                }
            }
            batches
        });
        let result = work(&receive);
        drop(receive);
        match reader.join() {
            Ok(batches) => (batches, result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
