import type { Socket } from 'bun'

type Side = 'client' | 'server'
type Pipe = { other?: Socket<Pipe>; early: Uint8Array[] }

interface Held {
  /** Closes the connection to the client. The held part can still be passed on to the server. */
  cut(): void
  /** Passes on the held part and all that follows. */
  pass(): void
}

/**
 * Starts a TCP proxy on a free port for PostgreSQL on the port `target`. It can hold the part of a connection
 * that contains a text, such as a COMMIT, and what follows in this direction.
 */
export const openProxy = (target: number) => {
  let waiting: { side: Side; text: string; found(held: Held): void } | undefined
  const sockets = new Set<Socket<Pipe>>()

  const forward = (side: Side, from: Socket<Pipe>, chunk: Uint8Array): void => {
    const { other, early } = from.data
    const text = Buffer.from(chunk).toString('latin1')
    // A heartbeat (changes.ts) begins and commits in one part.
    if (waiting?.side === side && text.includes(waiting.text) && !text.includes('BEGIN')) {
      const { found } = waiting
      waiting = undefined
      early.push(Uint8Array.from(chunk))
      from.data = { early }
      const client = side === 'client' ? from : other
      found({
        cut: () => void client?.terminate(),
        pass: () => {
          for (const part of early.splice(0)) other?.write(part)
          from.data = { ...(other && { other }), early }
        },
      })
    } else if (other) other.write(chunk)
    else early.push(Uint8Array.from(chunk))
  }
  const end = (socket: Socket<Pipe>): void => {
    sockets.delete(socket)
    socket.data.other?.end()
  }

  const listener = Bun.listen<Pipe>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: client => {
        client.data = { early: [] }
        sockets.add(client)
        const server = Bun.connect<Pipe>({
          hostname: '127.0.0.1',
          port: target,
          data: { other: client, early: [] },
          socket: {
            open: upstream => {
              sockets.add(upstream)
              client.data.other = upstream
              for (const part of client.data.early.splice(0)) upstream.write(part)
            },
            data: (upstream, chunk) => forward('server', upstream, chunk),
            close: end,
            error: () => {},
          },
        })
        server.catch(() => client.terminate())
      },
      data: (client, chunk) => forward('client', client, chunk),
      close: end,
      error: () => {},
    },
  })
  return {
    port: listener.port,
    /** Resolves when the next part of this side that contains the text is held. */
    hold: (side: Side, text: string): Promise<Held> =>
      new Promise(found => {
        waiting = { side, text, found }
      }),
    /** Connects new clients to another port. Open connections stay. */
    aim: (port: number): void => {
      target = port
    },
    close: (): void => {
      listener.stop(true)
      for (const socket of sockets) socket.terminate()
    },
  }
}
