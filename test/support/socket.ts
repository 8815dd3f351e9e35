import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  status: number
  headers: Headers
  body: string
}

/** A connection that stays open until the caller closes it. */
export const openSocket = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', reject)
  })

/**
 * Sends bytes that an HTTP client would not send, and reads until the server closes the connection. `lines`
 * are the request line and the headers. If they have no `Host`, `Host: localhost` is added. Returns undefined
 * if the server closes the connection without an answer.
 */
export const askRaw = async (port: number, lines: string[], body = ''): Promise<RawAnswer | undefined> => {
  const named = lines.some(line => /^host:/i.test(line)) ? [] : ['Host: localhost']
  const socket = await openSocket(port)
  let text = ''
  const closed = new Promise(resolve => socket.on('close', resolve))
  socket.setEncoding('utf8')
  socket.on('data', chunk => {
    text += chunk
  })
  // A server that has answered can reset the connection while the client still sends.
  socket.on('error', () => {})
  socket.write(`${[...lines, ...named, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`)
  await closed
  return parse(text)
}

const parse = (text: string): RawAnswer | undefined => {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
  if (!status) return undefined
  const headers = new Headers(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  return { status, headers, body: rest.join('\r\n\r\n') }
}
