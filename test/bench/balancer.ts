/**
 * Sends each request to the next of several servers, as a load balancer does: `bun test/bench/balancer.ts
 * <port> <port of a server> …`.
 */
import { connect, createServer } from 'node:net'
import { header } from './connection.ts'

const END_OF_HEAD = '\r\n\r\n'
const [port, ...servers] = process.argv.slice(2).map(Number)
let turn = 0

/**
 * True for a complete request. All received bytes belong to one request, because clients wait for a response
 * before the next request.
 */
const isComplete = (received: Buffer): boolean => {
  const end = received.indexOf(END_OF_HEAD)
  if (end < 0) return false
  const length = Number(header(received.toString('latin1', 0, end), 'content-length') ?? 0)
  return received.length >= end + END_OF_HEAD.length + length
}

createServer({ noDelay: true }, client => {
  const upstreams = servers.map(server => {
    const upstream = connect({ port: server, host: '127.0.0.1', noDelay: true })
    upstream.on('data', answer => client.write(answer))
    upstream.on('close', () => client.destroy())
    upstream.on('error', () => client.destroy())
    return upstream
  })
  let received = Buffer.alloc(0)
  client.on('data', bytes => {
    received = Buffer.concat([received, bytes as Buffer])
    if (!isComplete(received)) return
    upstreams[turn++ % upstreams.length]?.write(received)
    received = Buffer.alloc(0)
  })
  client.on('error', () => client.destroy())
  client.on('close', () => {
    for (const upstream of upstreams) upstream.destroy()
  })
}).listen(port, '127.0.0.1')
