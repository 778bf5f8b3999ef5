//! Retries, fallback to other models, and the record of what was spent.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome_api::{Delta, Response, Retry};
use epitome_model::{MicroDollars, Tokens};
use epitome_passes::TokenUsage;
use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::name::ModelName;
use crate::stop::Stop;
use crate::{Model, Request, Sink};

/// How often a model is called for one request, and how long to wait between the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of tries per model, the first one included.
    pub tries: u32,
    /// The backoff after the first failure; it doubles after each further one.
    pub first: Duration,
    /// The maximum backoff. If the next backoff, or the wait that a service asks for, would be
    /// longer, the model is not tried again.
    pub longest: Duration,
}

/// The jitter is less than 1/4 of the backoff: a random time that is added to it, so that clients
/// that were refused together do not retry together.
const PART: u32 = 4;

impl Default for RetryPolicy {
    /// Three tries, with backoffs of at least 2 s and 4 s. A service may ask for a wait of up to a
    /// minute.
    fn default() -> RetryPolicy {
        let first = Duration::from_secs(2);
        let longest = Duration::from_secs(60);
        RetryPolicy { tries: 3, first, longest }
    }
}

/// Waits between retries. Tests replace it.
pub trait Clock: Send + Sync {
    /// Waits for `time`, or until `stop` is called.
    fn wait(&self, time: Duration, stop: &Stop);
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn wait(&self, time: Duration, stop: &Stop) {
        stop.wait(time);
    }
}

/// One call of a model, or one that the caller stopped before it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The model.
    pub model: ModelName,
    /// The tokens billed, if the response reported them.
    pub used: Option<TokenUsage>,
    /// The cost of the billed tokens at list prices; `None` if these tokens or their price are
    /// unknown.
    pub cost: Option<MicroDollars>,
    /// The failure, if there was no response.
    pub failure: Option<Failure>,
}

/// Total calls, tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallTotals {
    /// Calls of a service. Calls that failed because of a missing key or wrong settings, or that
    /// the caller stopped, do not count.
    pub calls: u64,
    /// Calls of a service that failed.
    pub failed: u64,
    /// Calls of a service without a reported usage, including failed ones.
    pub unsaid: u64,
    /// Tokens of the calls that reported usage.
    pub used: TokenUsage,
    /// The cost of the tokens in `used` at list prices, as far as prices are known.
    pub cost: MicroDollars,
    /// Calls that reported usage, but whose price is unknown.
    pub unpriced: u64,
}

impl CallTotals {
    fn add(&mut self, attempt: &Attempt) {
        if attempt.failure.as_ref().is_some_and(|failure| !failure.reached_service()) {
            return;
        }
        self.calls += 1;
        self.failed += u64::from(attempt.failure.is_some());
        let Some(used) = attempt.used else {
            self.unsaid += 1;
            return;
        };
        self.used += used;
        match attempt.cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }
}

/// A list of models that is used as one. A model is called again as often as the policy allows
/// while its failure may be temporary; then the next one is called.
pub struct RetryingModel {
    first: Box<dyn Model>,
    others: Vec<Box<dyn Model>>,
    policy: RetryPolicy,
    clock: Box<dyn Clock>,
    prices: Catalogue,
    attempts: Mutex<Vec<Attempt>>,
}

impl RetryingModel {
    /// A list of one model, with the default policy and the prices of a table.
    pub fn new(first: impl Model + 'static, prices: Catalogue) -> RetryingModel {
        RetryingModel {
            first: Box::new(first),
            others: Vec::new(),
            policy: RetryPolicy::default(),
            clock: Box::new(RealClock),
            prices,
            attempts: Mutex::default(),
        }
    }

    /// Adds a fallback: a model that is called if none of the models before it gave a response,
    /// unless the caller has stopped the request.
    #[must_use]
    pub fn or(mut self, other: impl Model + 'static) -> RetryingModel {
        self.others.push(Box::new(other));
        self
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn with_policy(mut self, policy: RetryPolicy) -> RetryingModel {
        self.policy = policy;
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> RetryingModel {
        self.clock = Box::new(clock);
        self
    }

    /// What was spent so far.
    pub fn spent(&self) -> CallTotals {
        let mut spent = CallTotals::default();
        self.lock().iter().for_each(|attempt| spent.add(attempt));
        spent
    }

    /// Every [`Attempt`], in order.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.lock().clone()
    }

    /// Calls one model, with retries.
    fn one(
        &self,
        model: &dyn Model,
        request: &Request<'_>,
        mut sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure> {
        let mut wait = self.policy.first;
        let mut tries = 0;
        loop {
            let response = if stop.is_stopped() {
                Err(Failure::Stopped)
            } else {
                watched(model, request, &mut sink, stop)
            };
            self.note(model, &response);
            let failure = match response {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            tries += 1;
            let pause = failure.after().unwrap_or(wait).max(wait);
            if !failure.may_pass() || tries >= self.policy.tries || pause > self.policy.longest {
                return Err(failure);
            }
            let most = u64::try_from((wait / PART).as_millis()).unwrap_or(u64::MAX);
            let jitter = fastrand::u64(..most.max(1));
            if let Some(sink) = &mut sink {
                let reason = failure.summary();
                let attempt = tries + 1;
                let tries = self.policy.tries;
                sink(Delta::Retry(Retry { reason, wait: pause, attempt, tries }));
            }
            self.clock.wait(pause + Duration::from_millis(jitter), stop);
            wait = wait.saturating_mul(2);
        }
    }

    fn note(&self, model: &dyn Model, response: &Result<Response, Failure>) {
        let used = match response {
            Ok(response) => response.usage,
            Err(Failure::TooLong { used, .. }) => *used,
            Err(_) => None,
        };
        let name = model.name();
        let cost = used.as_ref().and_then(|used| Some(self.prices.look_up(name)?.cost(used)));
        let failure = response.as_ref().err().cloned();
        self.lock().push(Attempt { model: name.clone(), used, cost, failure });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for RetryingModel {
    fn name(&self) -> &ModelName {
        self.first.name()
    }

    fn window(&self) -> Option<Tokens> {
        self.first.window()
    }

    fn send(
        &self,
        request: &Request<'_>,
        mut sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure> {
        let mut response = self.one(&*self.first, request, reborrowed(&mut sink), stop);
        for other in &self.others {
            match &response {
                Ok(_) | Err(Failure::Stopped) => break,
                Err(_) => response = self.one(&**other, request, reborrowed(&mut sink), stop),
            }
        }
        response
    }
}

/// Calls the model once. If the call fails after the sink received a part of the response, sends
/// the sink a [`Restart`](Delta::Restart): that part is to be discarded.
fn watched(
    model: &dyn Model,
    request: &Request<'_>,
    sink: &mut Option<Sink<'_>>,
    stop: &Stop,
) -> Result<Response, Failure> {
    let Some(sink) = sink else { return model.send(request, None, stop) };
    let mut shown = false;
    let mut watch = |delta: Delta<'_>| {
        shown = true;
        sink(delta);
    };
    let response = model.send(request, Some(&mut watch), stop);
    if shown && response.is_err() {
        sink(Delta::Restart);
    }
    response
}

fn reborrowed<'a>(sink: &'a mut Option<Sink<'_>>) -> Option<Sink<'a>> {
    match sink {
        Some(sink) => Some(&mut **sink),
        None => None,
    }
}

impl fmt::Debug for RetryingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingModel").field("first", self.name()).finish_non_exhaustive()
    }
}
