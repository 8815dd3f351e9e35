/** One answer. `head` consists of the status line and the header lines. */
export interface Answer {
  status: number
  head: string
  body: string
}

/** A keep-alive connection that sends one request at a time. */
export interface Connection {
  send(request: string): Promise<Answer>
  close(): void
}

const END_OF_HEAD = '\r\n\r\n'

/**
 * Opens a connection for HTTP/1.1 over a plain socket. `fetch` takes more CPU time than the measured servers
 * and would dominate the result. The connection reads the bodies that the measured servers send: with
 * Content-Length, in chunks, or empty.
 */
export const connect = async (port: number): Promise<Connection> => {
  let received: Buffer = Buffer.alloc(0)
  let waiting: PromiseWithResolvers<Answer> | undefined
  let ended: Error | undefined
  const end = (error: Error) => {
    ended = error
    waiting?.reject(error)
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
        const answer = parseAnswer(received)
        if (!answer) return
        received = Buffer.alloc(0)
        waiting?.resolve(answer)
      },
      close: () => end(new Error('The server closed the connection.')),
      error: (_, error) => end(error),
    },
  })
  socket.setNoDelay(true)
  return {
    send(request) {
      if (ended) throw ended
      waiting = Promise.withResolvers<Answer>()
      const written = socket.write(request)
      if (written < Buffer.byteLength(request)) throw new Error('The request did not fit the socket at once.')
      return waiting.promise
    },
    close: () => void socket.end(),
  }
}

/** Parses an answer. Returns undefined while bytes are missing. */
const parseAnswer = (received: Buffer): Answer | undefined => {
  const end = received.indexOf(END_OF_HEAD)
  if (end < 0) return undefined
  const head = received.toString('latin1', 0, end)
  const body = received.subarray(end + END_OF_HEAD.length)
  const status = Number(head.slice(9, 12))
  const length = header(head, 'content-length')
  if (length !== undefined)
    return body.length < Number(length) ? undefined : { status, head, body: body.toString() }
  if (header(head, 'transfer-encoding') !== 'chunked') return { status, head, body: '' }
  const chunks = parseChunks(body)
  return chunks === undefined ? undefined : { status, head, body: chunks }
}

const parseChunks = (body: Buffer): string | undefined => {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const line = body.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = Number.parseInt(body.toString('latin1', at, line), 16)
    if (line + size + 4 > body.length) return undefined
    if (size === 0) return Buffer.concat(parts).toString()
    parts.push(body.subarray(line + 2, line + 2 + size))
    at = line + size + 4
  }
}

/** Returns the value of the first header with this name. Case is ignored. */
export const header = (head: string, name: string): string | undefined =>
  new RegExp(`\r\n${name}: *([^\r]*)`, 'i').exec(head)?.[1]

export const get = (path: string, headers: Record<string, string> = {}): string =>
  `GET ${path} HTTP/1.1\r\n${lines(headers)}\r\n`

export const post = (
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): string => {
  const body = new URLSearchParams(form).toString()
  const type = 'content-type: application/x-www-form-urlencoded'
  return `POST ${path} HTTP/1.1\r\n${lines(headers)}${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

let networks = 0

/**
 * Returns headers of a client in an unused network, so that the rate limits of networks do not limit the
 * load.
 */
export const fromNewNetwork = (): Record<string, string> => {
  const n = networks++
  return { 'x-forwarded-for': `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}` }
}

const lines = (headers: Record<string, string>): string =>
  Object.entries({ host: 'localhost', 'user-agent': 'bench', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
