//! Loads that use the network: bytes sent and received over TCP.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::{Failure, failed};

const BYTES_PER_CALL: usize = 64 * 1024;

/// How long somebody may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Takes one connection and reads it to its end.
pub fn receive(address: &OsStr) -> Result<(), Failure> {
    let received = || -> io::Result<()> {
        let (mut stream, _) = TcpListener::bind(parse(address)?)?.accept()?;
        let mut block = vec![0; BYTES_PER_CALL];
        while stream.read(&mut block)? > 0 {}
        Ok(())
    };
    received().map_err(|why| failed(address.display(), why))
}

/// Sends so many bytes to whoever listens, or will in a moment, and waits until they have been
/// taken: what the kernel still holds when a process ends goes out later.
pub fn send(address: &OsStr, mut size: usize) -> Result<(), Failure> {
    let mut sent = || -> io::Result<()> {
        let mut stream = connect(parse(address)?)?;
        let block = vec![b's'; BYTES_PER_CALL];
        while size > 0 {
            size -= stream.write(&block[..size.min(BYTES_PER_CALL)])?;
        }
        stream.shutdown(Shutdown::Write)?;
        stream.read(&mut [0]).map(drop)
    };
    sent().map_err(|why| failed(address.display(), why))
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let begin = Instant::now();
    loop {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Err(why)
                if why.kind() == io::ErrorKind::ConnectionRefused && begin.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            connected => return connected,
        }
    }
}

fn parse(address: &OsStr) -> io::Result<SocketAddr> {
    let text = address.to_str().and_then(|text| text.parse().ok());
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not like 10.0.0.1:5000"))
}
