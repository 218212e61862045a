//! One version of an object, as the log keeps it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use super::packed;

/// A version of an object. While it is fresh it shares the object with the store; later, if it is
/// not the current one, only its text is kept, which takes a tenth of the memory.
#[derive(Debug)]
pub(crate) struct Version {
    forms: Mutex<Forms>,
    /// Bytes of all versions that are kept as text.
    n_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Forms {
    object: Option<Arc<Value>>,
    text: Option<Bytes>,
}

impl Version {
    /// A fresh version; `n_bytes` is where its text will be counted.
    pub(crate) fn new(object: Arc<Value>, n_bytes: &Arc<AtomicUsize>) -> Self {
        Self {
            forms: Mutex::new(Forms {
                object: Some(object),
                text: None,
            }),
            n_bytes: Arc::clone(n_bytes),
        }
    }

    /// The object.
    pub(crate) fn object(&self) -> Arc<Value> {
        let forms = self.forms();
        if let Some(object) = &forms.object {
            return Arc::clone(object);
        }
        let text = forms.text.as_deref().unwrap_or_default();
        // We wrote it, so it can be read.
        Arc::new(serde_json::from_slice(text).unwrap_or_default())
    }

    /// The object as JSON, written once for all who watch.
    pub(crate) fn text(&self) -> Bytes {
        self.forms().text()
    }

    /// Keeps the text alone.
    pub(crate) fn shrink(&self) {
        let mut forms = self.forms();
        if forms.object.is_some() {
            let n_bytes = forms.text().len();
            forms.object = None;
            self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        }
    }

    /// Keeps the object alone, which the store has anyway.
    pub(crate) fn forget_text(&self) {
        let mut forms = self.forms();
        if forms.object.is_some() {
            forms.text = None;
        }
    }

    fn forms(&self) -> MutexGuard<'_, Forms> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        let forms = self.forms.get_mut();
        let forms = forms.unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(text)) = (&forms.object, &forms.text) {
            self.n_bytes.fetch_sub(text.len(), Ordering::Relaxed);
        }
    }
}

impl Forms {
    fn text(&mut self) -> Bytes {
        if self.text.is_none() {
            let object = self.object.as_deref().unwrap_or(&Value::Null);
            self.text = Some(packed::to_text(object).into());
        }
        self.text.clone().unwrap_or_default()
    }
}
