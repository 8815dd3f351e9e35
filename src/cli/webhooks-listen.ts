import { eventAnswer } from '#src/audit/schema.ts'
import { eventsUpTo, lastSeq, settledSeq } from '#src/audit/stream-store.ts'
import { ConfigError } from '#src/config.ts'
import { SECOND } from '#src/lib/duration.ts'
import { firstSeen } from '#src/lib/first-seen.ts'
import { silentLog } from '#src/lib/log.ts'
import { iso } from '#src/lib/text.ts'
import { createServiceClient } from '#src/resource-server/client.ts'
import { fitsPattern, pattern } from '#src/webhooks/schema.ts'
import { messageOf } from '#src/webhooks/send.ts'
import { newWebhookSecret, secretOfText, secretText, signMessage } from '#src/webhooks/signature.ts'
import { developmentServer, withDevelopment } from './development-server.ts'
import { openExisting } from './instance.ts'
import { loadServerConfig } from './last-start.ts'
import { print, write } from './print.ts'

/** Options of `gatehouse webhooks listen`. */
interface Options {
  config?: string
  dataDir?: string
  forward: string
  events?: string[]
  secret?: string
  url?: string
  client?: string
}

type Shown = ReturnType<typeof eventAnswer>

/**
 * The events of one server. `next` returns the events since its previous call, oldest first. The first call
 * returns the events since the source was opened.
 */
interface Source {
  name: string
  next(): Promise<Shown[]>
}

/** Milliseconds between two polls, short enough that a developer sees no delay. */
const POLL = SECOND / 2
const BATCH = 100
/**
 * Number of earlier events whose ids the program remembers at its start, so that it does not forward them.
 * The number is greater than `BATCH`, because when a purge or the reset of a development server removes the
 * newest events, reads begin further back.
 */
const KNOWN = 10 * BATCH
/**
 * Each read from another server starts this many milliseconds before the newest event read so far, because an
 * event may become visible after newer ones. Events of a copy whose clock is further behind are
 * missed: after a longer time each read of a busy server would have thousands of events.
 */
const LATE = 10 * SECOND
/**
 * Milliseconds within which the receiver must answer, as for a delivery of a webhook (webhooks/send.ts). The
 * limit also holds for the server from which events are read.
 */
const TIMEOUT = 15 * SECOND

/** Reads the events of an instance or a development server on this machine from the database. */
const localSource = async (options: Options): Promise<Source> => {
  const { config } = loadServerConfig(options)
  const file = developmentServer(config, options.dataDir !== undefined)
  const found = file ? withDevelopment(config, file) : config
  const { store } = await openExisting(found, silentLog)
  const isNew = firstSeen()
  let seen = await store.read(lastSeq)
  for (const { id } of await store.read(q => eventsUpTo(q, seen - KNOWN, seen, KNOWN))) isNew(id)
  return {
    name: found.url,
    next: async () => {
      // When the newest events were removed, SQLite gives their `seq` to new events. Each read therefore
      // begins `BATCH` numbers before the newest event, and `isNew` skips the events that were read before.
      seen = Math.min(seen, await store.read(lastSeq))
      const settled = await settledSeq(store)
      const events = await store.read(q => eventsUpTo(q, seen - BATCH, settled, 2 * BATCH))
      seen = events.length < 2 * BATCH ? Math.max(seen, settled) : (events.at(-1)?.seq ?? seen)
      return events.filter(({ id }) => isNew(id)).map(eventAnswer)
    },
  }
}

/** A page of events, or a refusal. */
type Answer = Partial<{ data: Shown[]; pagination: { next_cursor?: string }; error_description: string }>

/**
 * Parses an answer. Returns an empty object when the text is not JSON, for example an error page of a proxy.
 */
const membersOf = (text: string): Answer => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** Reads events of another server from its admin API. */
const remoteSource = async (issuer: string, clientId: string | undefined): Promise<Source> => {
  const clientSecret = process.env.SERVICE_CLIENT_SECRET
  if (!clientId || !clientSecret)
    throw new ConfigError('--url: needs --client, and its secret in SERVICE_CLIENT_SECRET.')
  const client = createServiceClient({ issuer, clientId, clientSecret, scopes: ['events:read'] })
  const page = async (
    query: Record<string, string>,
  ): Promise<{ data: Shown[]; next: string | undefined }> => {
    const answer = await client.fetch(`${issuer}/api/v1/admin/events?${new URLSearchParams(query)}`, {
      signal: AbortSignal.timeout(TIMEOUT),
    })
    const body = membersOf(await answer.text())
    if (!answer.ok || !body.data)
      throw new Error(`${issuer} answered ${answer.status}: ${body.error_description ?? 'no list of events'}`)
    return { data: body.data, next: body.pagination?.next_cursor }
  }
  const [latest] = (await page({ limit: '1' })).data
  const since = Date.parse(latest?.timestamp ?? iso(0))
  let last = since
  const isNew = firstSeen()
  const readFrom = async (from: number): Promise<Shown[]> => {
    const found: Shown[] = []
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const query = { order: 'asc', limit: String(BATCH), from: iso(from) }
      const { data, next } = await page({ ...query, ...(cursor !== undefined && { cursor }) })
      found.push(...data)
      cursor = next
    }
    last = Math.max(last, ...found.map(({ timestamp }) => Date.parse(timestamp)))
    // The ids are remembered only when all pages are read. If a page cannot be read, the next attempt
    // therefore still finds the events of the earlier pages.
    return found.filter(({ id }) => isNew(id))
  }
  await readFrom(since - LATE)
  return { name: issuer, next: () => readFrom(last - LATE) }
}

/** Posts an event. Returns the status of the answer, or the reason of the failure. */
const forwardTo = async (url: string, secret: Buffer, event: Shown): Promise<string> => {
  const { body, headers } = messageOf(event, Date.now(), content => signMessage('v1', secret, content))
  const init = {
    method: 'POST',
    body,
    headers,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT),
  } as const
  return fetch(url, init).then(
    ({ status }) => String(status),
    error => (error as Error).message,
  )
}

const patternOf = (text: string): string => {
  const [issue] = pattern.safeParse(text).error?.issues ?? []
  if (!issue) return text
  throw new ConfigError(`--events: ${text}: ${issue.message} \`gatehouse guide events\` lists all types.`)
}

const secretOf = ({ secret }: Options): Buffer => {
  const given = secret === undefined ? newWebhookSecret() : secretOfText('v1', secret)
  if (!given) throw new ConfigError('--secret: must be whsec_ followed by 24 to 64 bytes in base64.')
  return given
}

/**
 * Forwards new events to a URL until the process is stopped, or the reader of its output ends. Prints a line
 * for each event. A failed delivery is not repeated, because the developer sees the failure and can cause the
 * event again.
 *
 * @throws ConfigError for wrong options
 */
export const webhooksListen = async (options: Options): Promise<void> => {
  const forward = URL.parse(options.forward)
  if (!forward || !/^https?:$/.test(forward.protocol))
    throw new ConfigError('--forward: must be an http or https URL such as http://localhost:3000/events.')
  const secret = secretOf(options)
  const patterns = (options.events ?? ['*']).map(patternOf)
  if (options.url && !/^https?:$/.test(URL.parse(options.url)?.protocol ?? ''))
    throw new ConfigError('--url: must be an http or https URL such as https://id.example.com.')
  const source = options.url
    ? await remoteSource(options.url.replace(/\/$/, ''), options.client)
    : await localSource(options)
  print(`Events of ${source.name} go to ${forward.href}\nSecret: ${secretText('v1', secret)}`)
  for (;;) {
    const events = await source.next().catch(error => {
      console.error(`gatehouse: ${(error as Error).message}`)
      return []
    })
    for (const event of events.filter(({ type }) => patterns.some(each => fitsPattern(each, type)))) {
      const status = await forwardTo(forward.href, secret, event)
      if (!write(`${event.timestamp} ${event.type} ${event.id}: ${status}\n`)) return
    }
    await Bun.sleep(POLL)
  }
}
