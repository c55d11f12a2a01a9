//! Table locks: who may change a table.
//!
//! INSERT takes a Shared lock, because two insertions can only meet in a key and the coordinator checks keys; all
//! else that writes takes an Exclusive one, because it reads the rows that it changes. Reads take none. Locks are held
//! until the transaction's epoch is published (or it rolls back), so the holder of an Exclusive lock finds every
//! earlier change of the table in the newest snapshot.
//!
//! Waiters are served first come, first served; a holder that upgrades goes first. When a new wait would close a
//! cycle in the wait-for graph, that wait fails with 40P01.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use plan::{RelationId, SqlState};
use tokio::sync::oneshot;

use crate::error::ServerError;

/// How a table is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Others may insert too.
    Shared,
    /// Nobody else may write.
    Exclusive,
}

/// All table locks.
#[derive(Default)]
pub struct Locks {
    state: Mutex<HashMap<RelationId, TableLock>>,
    next: AtomicU64,
}

#[derive(Default)]
struct TableLock {
    holders: Vec<(u64, Mode)>,
    queue: VecDeque<Waiter>,
}

struct Waiter {
    owner: u64,
    mode: Mode,
    granted: oneshot::Sender<()>,
}

impl TableLock {
    /// Whether the holders other than `owner` leave room for a mode.
    fn admits(&self, owner: u64, mode: Mode) -> bool {
        self.holders.iter().all(|(holder, held)| *holder == owner || (*held == Mode::Shared && mode == Mode::Shared))
    }

    fn grant(&mut self, owner: u64, mode: Mode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = mode,
            None => self.holders.push((owner, mode)),
        }
    }

    fn serve(&mut self) {
        while let Some(waiter) = self.queue.front() {
            if !self.admits(waiter.owner, waiter.mode) {
                return;
            }
            if let Some(Waiter { owner, mode, granted }) = self.queue.pop_front() {
                // A waiter that gave up has no receiver any more.
                if granted.send(()).is_ok() {
                    self.grant(owner, mode);
                }
            }
        }
    }

    /// For whom a waiter waits: holders that exclude it, and those before it in the queue.
    fn blockers(&self, owner: u64) -> Vec<u64> {
        let Some(position) = self.queue.iter().position(|waiter| waiter.owner == owner) else { return Vec::new() };
        let mode = self.queue[position].mode;
        let excludes = |other: u64, held: Mode| other != owner && (held == Mode::Exclusive || mode == Mode::Exclusive);
        let holders = self.holders.iter().filter(|(holder, held)| excludes(*holder, *held)).map(|(holder, _)| *holder);
        let earlier = self.queue.range(..position).map(|waiter| waiter.owner);
        holders.chain(earlier).collect()
    }
}

impl Locks {
    /// A new owner of locks, holding none.
    pub fn owner(self: &Arc<Self>) -> Held {
        Held { locks: self.clone(), owner: self.next.fetch_add(1, Ordering::Relaxed), tables: Vec::new() }
    }
}

/// The locks that a transaction holds. Dropping it releases them.
pub struct Held {
    locks: Arc<Locks>,
    owner: u64,
    tables: Vec<(RelationId, Mode)>,
}

impl Held {
    /// Locks a table, waiting for its turn.
    pub async fn acquire(&mut self, table: RelationId, mode: Mode) -> Result<(), ServerError> {
        let known = self.tables.iter().position(|(held, _)| *held == table);
        if known.is_some_and(|position| self.tables[position].1 >= mode) {
            return Ok(());
        }
        let waiting = self.request(table, mode)?;
        // From here on the table is ours to release, even if the wait is given up.
        if known.is_none() {
            self.tables.push((table, Mode::Shared));
        }
        if let Some(granted) = waiting {
            let _ = granted.await;
        }
        if let Some(entry) = self.tables.iter_mut().find(|(held, _)| *held == table) {
            entry.1 = mode;
        }
        Ok(())
    }

    fn request(&self, table: RelationId, mode: Mode) -> Result<Option<oneshot::Receiver<()>>, ServerError> {
        let mut state = self.locks.state.lock();
        let lock = state.entry(table).or_default();
        let upgrade = lock.holders.iter().any(|(holder, _)| *holder == self.owner);
        // A wait that was given up earlier is replaced.
        lock.queue.retain(|waiter| waiter.owner != self.owner);
        if lock.admits(self.owner, mode) && (upgrade || lock.queue.is_empty()) {
            lock.grant(self.owner, mode);
            return Ok(None);
        }
        let (granted, receiver) = oneshot::channel();
        let waiter = Waiter { owner: self.owner, mode, granted };
        if upgrade {
            lock.queue.push_front(waiter)
        } else {
            lock.queue.push_back(waiter)
        }
        if closes_cycle(&state, self.owner) {
            if let Some(lock) = state.get_mut(&table) {
                lock.queue.retain(|waiter| waiter.owner != self.owner);
                lock.serve();
            }
            return Err(ServerError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
                .with_detail("Two transactions each wait for a table that the other has written.")
                .with_hint("Run the transaction again."));
        }
        Ok(Some(receiver))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.locks.state.lock();
        for (table, _) in &self.tables {
            let Some(lock) = state.get_mut(table) else { continue };
            lock.holders.retain(|(holder, _)| *holder != self.owner);
            lock.queue.retain(|waiter| waiter.owner != self.owner);
            lock.serve();
            if lock.holders.is_empty() && lock.queue.is_empty() {
                state.remove(table);
            }
        }
    }
}

/// Whether an owner waits, over others, for itself.
fn closes_cycle(state: &HashMap<RelationId, TableLock>, owner: u64) -> bool {
    let blockers = |of: u64| state.values().flat_map(move |lock| lock.blockers(of));
    let mut seen = HashSet::new();
    let mut open: Vec<u64> = blockers(owner).collect();
    while let Some(next) = open.pop() {
        if next == owner {
            return true;
        }
        if seen.insert(next) {
            open.extend(blockers(next));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const A: RelationId = RelationId(1);
    const B: RelationId = RelationId(2);

    #[tokio::test]
    async fn inserters_share_and_writers_wait_in_order() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two, mut three, mut four) = (locks.owner(), locks.owner(), locks.owner(), locks.owner());
        one.acquire(A, Mode::Shared).await.expect("free");
        two.acquire(A, Mode::Shared).await.expect("shared");
        let mut writer = Box::pin(three.acquire(A, Mode::Exclusive));
        assert!(writer.as_mut().now_or_never().is_none());
        let mut late = Box::pin(four.acquire(A, Mode::Shared));
        assert!(late.as_mut().now_or_never().is_none(), "it must not overtake the writer");
        drop(one);
        assert!(writer.as_mut().now_or_never().is_none());
        drop(two);
        assert!(writer.as_mut().now_or_never().is_some());
        drop(writer);
        assert!(late.as_mut().now_or_never().is_none());
        drop(three);
        assert!(late.as_mut().now_or_never().is_some());
        drop(late);
        drop(four);
        assert!(locks.state.lock().is_empty());
    }

    #[tokio::test]
    async fn a_cycle_of_waits_fails_the_last_one() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two) = (locks.owner(), locks.owner());
        one.acquire(A, Mode::Exclusive).await.expect("free");
        two.acquire(B, Mode::Exclusive).await.expect("free");
        let mut waiting = Box::pin(one.acquire(B, Mode::Exclusive));
        assert!(waiting.as_mut().now_or_never().is_none());
        let error = two.acquire(A, Mode::Exclusive).await.expect_err("a cycle");
        assert_eq!(error.sqlstate, SqlState::DEADLOCK_DETECTED);
        drop(two);
        assert!(waiting.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn two_upgrades_are_a_deadlock() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two) = (locks.owner(), locks.owner());
        one.acquire(A, Mode::Shared).await.expect("free");
        two.acquire(A, Mode::Shared).await.expect("shared");
        let mut upgrade = Box::pin(one.acquire(A, Mode::Exclusive));
        assert!(upgrade.as_mut().now_or_never().is_none());
        let error = two.acquire(A, Mode::Exclusive).await.expect_err("both upgrade");
        assert_eq!(error.sqlstate, SqlState::DEADLOCK_DETECTED);
        drop(two);
        assert!(upgrade.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_wait_given_up_blocks_nobody() {
        let locks = Arc::new(Locks::default());
        let (mut one, mut two, mut three) = (locks.owner(), locks.owner(), locks.owner());
        one.acquire(A, Mode::Shared).await.expect("free");
        assert!(two.acquire(A, Mode::Exclusive).now_or_never().is_none());
        drop(two);
        three.acquire(A, Mode::Shared).await.expect("nobody waits any more");
    }
}
