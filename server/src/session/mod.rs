//! One client: settings, transaction block, prepared statements, portals.
//!
//! A session knows no protocol: it is given statements and answers with an [`Outcome`]; [`crate::pgwire`] puts that on the
//! wire. Its transaction follows PostgreSQL's rules: outside of a block every statement (or all statements of one simple
//! query, or of one extended batch up to Sync) is an *implicit* transaction; BEGIN makes it *explicit*; an error in an
//! explicit block leaves it *failed* until ROLLBACK.
//!
//! Reading order: [`settings`], [`prepared`], [`portal`], [`execute`] (one arm per statement), [`copy`], [`input`] (text to
//! values).

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plan::SqlState;
use planner::{Parsed, SessionInfo, Statement};
use tokio::sync::Notify;

use crate::catalog::CatalogVersion;
use crate::catalog::measured::Measured;
use crate::coordinator::{Coordinator, Transaction};
use crate::error::{Notice, Result, ServerError, Severity};

pub mod copy;
pub mod execute;
mod explain;
pub mod input;
pub mod portal;
pub mod prepared;
pub mod settings;
pub mod timezone;

pub use execute::Outcome;
pub use portal::{Portal, Rows};
pub use prepared::Prepared;
use settings::Settings;

/// Where a session stands between statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not in a block.
    Idle,
    /// In a block.
    Block,
    /// In a block that has failed.
    Failed,
}

/// The transaction that the next statement joins.
enum Block {
    /// None yet.
    Idle,
    /// Begun by a statement; ends with it, or with its batch.
    Implicit(Transaction),
    /// Begun by BEGIN.
    Explicit(Transaction),
    /// Explicit, and failed: only its end is accepted.
    Failed,
}

/// Asks a session's running statement to stop.
#[derive(Debug, Default)]
pub struct CancelSignal {
    requested: AtomicBool,
    wake: Notify,
}

impl CancelSignal {
    /// Asks.
    pub fn cancel(&self) {
        self.requested.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    /// Forgets what was asked before: it was meant for an earlier statement.
    fn reset(&self) {
        self.requested.store(false, Ordering::Release);
    }

    /// Returns when it was asked.
    async fn cancelled(&self) {
        loop {
            let notified = self.wake.notified();
            tokio::pin!(notified);
            // Registered before the flag is looked at, so that no request falls between.
            notified.as_mut().enable();
            if self.requested.load(Ordering::Acquire) {
                return;
            }
            notified.await;
        }
    }
}

/// One client's state.
pub struct Session {
    coordinator: Arc<Coordinator>,
    settings: Settings,
    block: Block,
    prepared: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    notices: Vec<Notice>,
    cancel: Arc<CancelSignal>,
    /// When the running statement is to be cancelled.
    deadline: Option<tokio::time::Instant>,
}

impl Session {
    /// A session of a user who has just connected.
    pub fn new(coordinator: Arc<Coordinator>, user: &str, database: &str, cancel: Arc<CancelSignal>) -> Session {
        Session {
            coordinator,
            settings: Settings::new(user, database),
            block: Block::Idle,
            prepared: HashMap::new(),
            portals: HashMap::new(),
            notices: Vec::new(),
            cancel,
            deadline: None,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The settings, to change them.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Where it stands between statements.
    pub fn status(&self) -> Status {
        match self.block {
            Block::Idle | Block::Implicit(_) => Status::Idle,
            Block::Explicit(_) => Status::Block,
            Block::Failed => Status::Failed,
        }
    }

    /// What to tell the client, as far as it wants to know.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        if !notices.is_empty() {
            let (warnings, others) = (self.settings.sends_warnings(), self.settings.sends_notices());
            notices.retain(|notice| match notice.severity {
                Severity::Warning => warnings,
                Severity::Notice => others,
            });
        }
        notices
    }

    /// A statement begins: earlier cancel requests are void, its time runs.
    pub fn start_statement(&mut self) {
        self.cancel.reset();
        self.deadline = self.settings.statement_timeout().map(|timeout| tokio::time::Instant::now() + timeout);
    }

    /// Splits a text into statements.
    pub fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        Ok(self.coordinator.planner().parse(text)?)
    }

    /// Runs one statement of a simple query.
    pub async fn run(&mut self, parsed: &Parsed) -> Result<Outcome> {
        self.check_not_failed(parsed.is_transaction_control())?;
        let statement = self.bind_statement(parsed)?;
        self.execute(statement).await
    }

    /// Resolves a statement without parameters.
    fn bind_statement(&self, parsed: &Parsed) -> Result<Statement> {
        let measured = Measured::new(self.catalog(), self.coordinator.published());
        let bound = self.coordinator.planner().bind(parsed, &measured, self.info(), &[])?;
        if !bound.parameters.is_empty() {
            return Err(ServerError::new(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        Ok(bound.statement)
    }

    /// Refuses statements in a failed block, except those that end it.
    pub fn check_not_failed(&self, ends_block: bool) -> Result<()> {
        if matches!(self.block, Block::Failed) && !ends_block {
            return Err(ServerError::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }

    /// The catalog that the next statement sees.
    fn catalog(&self) -> Arc<CatalogVersion> {
        match &self.block {
            Block::Implicit(transaction) | Block::Explicit(transaction) => transaction.catalog(),
            Block::Idle | Block::Failed => self.coordinator.published().catalog.clone(),
        }
    }

    /// What planning depends on.
    fn info(&self) -> &Arc<SessionInfo> {
        self.settings.info()
    }

    /// The transaction of the next statement; begins an implicit one if there is none.
    fn transaction(&mut self) -> Result<&mut Transaction> {
        if matches!(self.block, Block::Idle) {
            let read_only = self.settings.default_read_only();
            self.block = Block::Implicit(Transaction::begin(self.coordinator.clone(), read_only));
        }
        match &mut self.block {
            Block::Implicit(transaction) | Block::Explicit(transaction) => Ok(transaction),
            Block::Idle | Block::Failed => Err(ServerError::internal("no transaction")),
        }
    }

    /// A further statement joins what a statement has begun.
    fn join_implicit(&mut self) {
        if let Block::Implicit(transaction) = &self.block
            && !transaction.is_block()
            && let Block::Implicit(transaction) = std::mem::replace(&mut self.block, Block::Idle)
        {
            self.block = Block::Implicit(transaction.in_block());
        }
    }

    /// Whether SET and cursors last until the end of a block.
    fn in_block(&self) -> bool {
        !matches!(self.block, Block::Idle)
    }

    /// Commits an implicit transaction: the statement, or its batch, is complete. In an explicit block nothing happens.
    pub async fn end_implicit(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Implicit(transaction) => {
                let result = transaction.commit().await;
                self.block_ended(result.is_ok());
                result
            }
            // Portals end with a batch even if nothing was executed.
            Block::Idle => {
                self.portals.clear();
                Ok(())
            }
            block => {
                self.block = block;
                Ok(())
            }
        }
    }

    /// A statement has failed: its implicit transaction is undone, an explicit block is failed.
    pub fn fail(&mut self) {
        match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Idle => {}
            Block::Implicit(transaction) => {
                transaction.rollback();
                self.block_ended(false);
            }
            Block::Explicit(transaction) => {
                transaction.rollback();
                self.portals.clear();
                self.block = Block::Failed;
            }
            Block::Failed => self.block = Block::Failed,
        }
    }

    /// What lasts until the end of a transaction ends.
    fn block_ended(&mut self, committed: bool) {
        self.portals.clear();
        self.settings.end_block(committed);
    }

    /// BEGIN.
    fn begin(&mut self, read_only: bool) {
        let read_only = read_only || self.settings.default_read_only();
        self.block = match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Idle => Block::Explicit(Transaction::begin(self.coordinator.clone(), read_only).in_block()),
            // Statements before BEGIN in the same message belong to the block.
            Block::Implicit(transaction) => Block::Explicit(transaction.in_block()),
            block @ (Block::Explicit(_) | Block::Failed) => {
                self.notices.push(Notice::warning(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "there is already a transaction in progress",
                ));
                block
            }
        };
    }

    /// SET TRANSACTION READ ONLY or READ WRITE: only before the block has done anything that matters.
    fn set_read_only(&mut self, read_only: bool) -> Result<()> {
        match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Explicit(transaction) if transaction.has_writes() => {
                self.block = Block::Explicit(transaction);
                Err(ServerError::new(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "transaction read-write mode must be set before any write",
                ))
            }
            Block::Explicit(transaction) => {
                transaction.rollback();
                self.block = Block::Explicit(Transaction::begin(self.coordinator.clone(), read_only).in_block());
                Ok(())
            }
            block => {
                self.block = block;
                Ok(())
            }
        }
    }

    /// COMMIT. Returns the command tag: a failed block is rolled back.
    async fn commit(&mut self) -> Result<&'static str> {
        match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Idle => self.warn_no_block(),
            Block::Implicit(transaction) => {
                self.warn_no_block();
                let result = transaction.commit().await;
                self.block_ended(result.is_ok());
                result?;
            }
            Block::Explicit(transaction) => {
                let result = transaction.commit().await;
                self.block_ended(result.is_ok());
                result?;
            }
            Block::Failed => {
                self.block_ended(false);
                return Ok("ROLLBACK");
            }
        }
        Ok("COMMIT")
    }

    /// ROLLBACK.
    fn rollback(&mut self) {
        match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Idle => self.warn_no_block(),
            Block::Implicit(transaction) => {
                self.warn_no_block();
                transaction.rollback();
                self.block_ended(false);
            }
            Block::Explicit(transaction) => {
                transaction.rollback();
                self.block_ended(false);
            }
            Block::Failed => self.block_ended(false),
        }
    }

    /// COMMIT or ROLLBACK outside of a block.
    fn warn_no_block(&mut self) {
        self.notices.push(Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress"));
    }

    /// What cancels the running statement.
    pub fn guard(&self) -> Guard {
        Guard { cancel: self.cancel.clone(), deadline: self.deadline }
    }
}

/// Cancel signal and deadline of the running statement, apart from the session so that its transaction can be used under
/// them.
pub struct Guard {
    cancel: Arc<CancelSignal>,
    deadline: Option<tokio::time::Instant>,
}

impl Guard {
    /// Runs work until it is done, cancelled, or its time is over.
    pub async fn run<T, E>(self, work: impl Future<Output = Result<T, E>>) -> Result<T>
    where
        ServerError: From<E>,
    {
        guarded(self.cancel, self.deadline, async { work.await.map_err(ServerError::from) }).await
    }
}

/// Runs work until it is done, cancelled, or the deadline has passed.
async fn guarded<T>(
    cancel: Arc<CancelSignal>,
    deadline: Option<tokio::time::Instant>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let timeout = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = work => result,
        () = cancel.cancelled() => Err(ServerError::cancelled()),
        () = timeout => Err(ServerError::new(
            SqlState::QUERY_CANCELED,
            "canceling statement due to statement timeout",
        )),
    }
}

/// How long an explicit block may wait for the client, while the session is in one.
pub fn idle_timeout(session: &Session) -> Option<Duration> {
    match session.block {
        Block::Explicit(_) | Block::Failed => session.settings.idle_in_transaction_timeout(),
        Block::Idle | Block::Implicit(_) => None,
    }
}
