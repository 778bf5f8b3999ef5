//! Asking again, asking another one, and keeping the account.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use epitome_formats::api::{Delta, Response};
use epitome_model::{MicroDollars, Tokens};
use epitome_passes::TokenUsage;
use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::name::ModelName;
use crate::stop::Stop;
use crate::{Model, Request, Sink};

/// How often a model is asked, and how long is waited in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often one model is asked.
    pub tries: u32,
    /// What is waited after the first failure; after each further one twice as long.
    pub first: Duration,
    /// What is waited at most. A service that asks for more is not asked again.
    pub longest: Duration,
}

/// A random part of what is waited is waited beside it, up to this: many who were refused at once
/// do not come back at once.
const PART: u32 = 4;

impl Default for Patience {
    /// Three times, at least 2 s and 4 s apart, and as long as a minute if the service says so.
    fn default() -> Patience {
        let (first, longest) = (Duration::from_secs(2), Duration::from_secs(60));
        Patience { tries: 3, first, longest }
    }
}

/// Whoever waits.
pub trait Clock: Send + Sync {
    /// Waits so long, or until it is stopped.
    fn wait(&self, time: Duration, stop: &Stop);
}

/// The clock on the wall.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn wait(&self, time: Duration, stop: &Stop) {
        stop.wait(time);
    }
}

/// One time that a model was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which one.
    pub model: ModelName,
    /// What was billed, if the service said so.
    pub used: Option<TokenUsage>,
    /// What that costs at list prices, if they are known.
    pub cost: Option<MicroDollars>,
    /// Why there was no answer.
    pub failure: Option<Failure>,
}

/// What was spent on models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Times that a service was asked.
    pub calls: u64,
    /// Of these, those without an answer.
    pub failed: u64,
    /// Of these, those of which the service did not say what they came to.
    pub unsaid: u64,
    /// Tokens of those of which it did.
    pub used: TokenUsage,
    /// What these cost at list prices, as far as they are known.
    pub cost: MicroDollars,
    /// Calls with tokens that have no known price.
    pub unpriced: u64,
}

impl Spent {
    fn add(&mut self, attempt: &Attempt) {
        if attempt.failure.as_ref().is_some_and(|failure| !failure.was_asked()) {
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

/// Models that are asked in turn: each again while its trouble may pass, then the next one.
pub struct Patient {
    first: Box<dyn Model>,
    others: Vec<Box<dyn Model>>,
    patience: Patience,
    clock: Box<dyn Clock>,
    prices: Catalogue,
    attempts: Mutex<Vec<Attempt>>,
}

impl Patient {
    /// With a model, the usual patience, and the prices of a table.
    pub fn new(first: impl Model + 'static, prices: Catalogue) -> Patient {
        Patient {
            first: Box::new(first),
            others: Vec::new(),
            patience: Patience::default(),
            clock: Box::new(RealClock),
            prices,
            attempts: Mutex::default(),
        }
    }

    /// With another model for when the ones before have no answer.
    #[must_use]
    pub fn or(mut self, other: impl Model + 'static) -> Patient {
        self.others.push(Box::new(other));
        self
    }

    /// With another patience.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Patient {
        self.patience = patience;
        self
    }

    /// With somebody else who waits.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Patient {
        self.clock = Box::new(clock);
        self
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spent {
        let mut spent = Spent::default();
        self.lock().iter().for_each(|attempt| spent.add(attempt));
        spent
    }

    /// Every time that a model was asked, in order.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.lock().clone()
    }

    /// Sends to one model, and again as long as that may help.
    fn one(
        &self,
        model: &dyn Model,
        request: &Request<'_>,
        mut sink: Option<Sink<'_>>,
        stop: &Stop,
    ) -> Result<Response, Failure> {
        let mut wait = self.patience.first;
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
            if !failure.may_pass() || tries >= self.patience.tries || pause > self.patience.longest
            {
                return Err(failure);
            }
            let beside = (wait / PART).as_millis();
            let beside = fastrand::u64(..=u64::try_from(beside).unwrap_or(u64::MAX));
            self.clock.wait(pause + Duration::from_millis(beside), stop);
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
        let price = |used: &TokenUsage| Some(self.prices.known(name)?.cost(used));
        let cost = used.as_ref().and_then(price);
        let failure = response.as_ref().err().cloned();
        self.lock().push(Attempt { model: name.clone(), used, cost, failure });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Patient {
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

/// Sends once. If the response breaks off after some of it was shown, the sink is told that this is
/// void.
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

impl fmt::Debug for Patient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patient").field("first", self.name()).finish_non_exhaustive()
    }
}
