//! The wire under a server's connection, which tells whom it waits for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::connection_table::Held;

/// How long we read on after our last word. A connection that is closed with bytes unread is reset,
/// and the client may lose the answer.
const LINGER: Duration = Duration::from_millis(500);
/// What is read at a time meanwhile.
const SCRAP: usize = 16 << 10;

/// One connection's wire.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    held: Arc<Held>,
    /// Until when we read on, once we have said our last word.
    lingers: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, held: Arc<Held>) -> Self {
        Self {
            stream,
            held,
            lingers: None,
        }
    }

    fn written<T>(&self, polled: Poll<T>) -> Poll<T> {
        self.held.writes(polled.is_pending());
        polled
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.held.reads(polled.is_pending());
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingers.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.lingers = Some(Box::pin(tokio::time::sleep(LINGER)));
        }
        let mut scrap = [0; SCRAP];
        loop {
            let lingers = self.lingers.as_mut();
            if lingers.is_none_or(|sleep| sleep.as_mut().poll(context).is_ready()) {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut scrap);
            match ready!(self.as_mut().poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }
}
