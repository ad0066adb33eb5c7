//! Loads that use the network: bytes sent and received over TCP and UDP.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::{Failure, failed};

const BYTES_PER_CALL: usize = 64 * 1024;

/// How long the receiver may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Takes one connection and reads it to its end.
pub(crate) fn receive(address: &OsStr) -> Result<(), Failure> {
    let received = || -> io::Result<()> {
        let (mut stream, _) = TcpListener::bind(parse(address)?)?.accept()?;
        let mut block = vec![0; BYTES_PER_CALL];
        while stream.read(&mut block)? > 0 {}
        Ok(())
    };
    received().map_err(|why| failed(address.display(), why))
}

/// Sends this many bytes to a listener, which may start a moment later, and waits until they are
/// acknowledged: bytes that the kernel still has when a process exits are sent later.
pub(crate) fn send(address: &OsStr, mut size: usize) -> Result<(), Failure> {
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

/// What `talk` does.
pub(crate) struct Talk {
    /// Connections, one after the other.
    pub count: usize,
    /// Bytes sent through each.
    pub size: usize,
    /// How long the listener is open before the first.
    pub after: Duration,
    /// How long all connections stay open when everything has been sent.
    pub linger: Duration,
}

/// Sends bytes to itself through connections over the loopback.
pub(crate) fn talk(talk: &Talk) -> Result<(), Failure> {
    let talked = || -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        std::thread::sleep(talk.after);
        let block = vec![b't'; BYTES_PER_CALL];
        let mut read = vec![0; BYTES_PER_CALL];
        let mut open = Vec::new();
        for _ in 0..talk.count {
            let mut client = TcpStream::connect(address)?;
            let (mut server, _) = listener.accept()?;
            let mut left = talk.size;
            while left > 0 {
                let sent = client.write(&block[..left.min(BYTES_PER_CALL)])?;
                server.read_exact(&mut read[..sent])?;
                left -= sent;
            }
            if talk.linger.is_zero() {
                // The other end is read to its end, so that nothing is in flight when it is closed.
                client.shutdown(Shutdown::Write)?;
                server.read_to_end(&mut Vec::new())?;
            } else {
                open.push((client, server));
            }
        }
        std::thread::sleep(talk.linger);
        Ok(())
    };
    talked().map_err(|why| failed("talk", why))
}

/// Sends this many datagrams of a size to itself, and receives each.
pub(crate) fn datagrams(count: usize, size: usize) -> Result<(), Failure> {
    let sent = || -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = socket.local_addr()?;
        let mut block = vec![b'd'; size];
        for _ in 0..count {
            socket.send_to(&block, address)?;
            socket.recv(&mut block)?;
        }
        Ok(())
    };
    sent().map_err(|why| failed("datagrams", why))
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
