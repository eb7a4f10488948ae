//! Tasks and drivers of moq-net in one thread, without a runtime: each is polled once it was woken or its time has come.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

/// Says that a task is to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Flag {
    fn new() -> (Arc<Self>, Waker) {
        let flag = Arc::new(Self(AtomicBool::new(true)));
        (flag.clone(), flag.into())
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

struct Task {
    flag: Arc<Flag>,
    waker: Waker,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

struct Driven {
    flag: Arc<Flag>,
    waiter: kio::Waiter,
    /// Time at which it is polled though nothing wakes it.
    at: Option<Instant>,
    driver: Box<dyn moq_net::time::Driver>,
}

/// The tasks of a connection, and their clock; its clones are the same.
#[derive(Clone)]
pub struct Tasks {
    tasks: Rc<RefCell<Vec<Task>>>,
    drivers: Rc<RefCell<Vec<Driven>>>,
    now: Rc<Cell<Instant>>,
}

impl Tasks {
    pub fn new(now: Instant) -> Self {
        Self { tasks: Rc::default(), drivers: Rc::default(), now: Rc::new(Cell::new(now)) }
    }

    /// The time of the turn.
    pub fn now(&self) -> Instant {
        self.now.get()
    }

    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let (flag, waker) = Flag::new();
        self.tasks.borrow_mut().push(Task { flag, waker, future: Box::pin(future) });
    }

    pub fn drive(&self, driver: impl moq_net::time::Driver + 'static) {
        let (flag, waker) = Flag::new();
        let waiter = kio::Waiter::new(waker);
        self.drivers.borrow_mut().push(Driven { flag, waiter, at: None, driver: Box::new(driver) });
    }

    /// Returns the time at which a driver has something to do though nothing happens, or the last turn's if something is awake:
    /// others than this connection may have woken it.
    pub fn timeout(&self) -> Option<Instant> {
        let drivers = self.drivers.borrow();
        let is_awake = drivers.iter().any(|driven| driven.flag.is_set())
            || self.tasks.borrow().iter().any(|task| task.flag.is_set());
        let due = drivers.iter().filter_map(|driven| driven.at).min();
        if is_awake { Some(self.now()) } else { due }
    }

    /// Drops all of them.
    pub fn clear(&self) {
        let all = (self.tasks.take(), self.drivers.take());
        drop(all);
    }

    /// Has all that is awake, or due, do what it can.
    pub fn turn(&self, now: Instant) {
        self.now.set(now);
        while self.poll_drivers(now) | self.poll_tasks() {}
    }

    fn poll_drivers(&self, now: Instant) -> bool {
        let mut has_run = false;
        // Out of the list while they run: they may add others.
        let mut drivers = self.drivers.take();
        drivers.retain_mut(|driven| {
            let is_due = driven.at.is_some_and(|at| at <= now);
            if !driven.flag.take() && !is_due {
                return true;
            }
            has_run = true;
            match driven.driver.poll(now, &driven.waiter) {
                Ok(at) => {
                    driven.at = at;
                    true
                }
                Err(_) => false, // its session or origin has ended
            }
        });
        let added = self.drivers.replace(drivers);
        self.drivers.borrow_mut().extend(added);
        has_run
    }

    fn poll_tasks(&self) -> bool {
        let mut has_run = false;
        let mut tasks = self.tasks.take();
        tasks.retain_mut(|task| {
            if !task.flag.take() {
                return true;
            }
            has_run = true;
            task.future.as_mut().poll(&mut Context::from_waker(&task.waker)).is_pending()
        });
        let added = self.tasks.replace(tasks);
        self.tasks.borrow_mut().extend(added);
        has_run
    }
}
