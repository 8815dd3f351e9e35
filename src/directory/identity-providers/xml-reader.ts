import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import type { XmlReader } from '#src/context.ts'
import { networkOf } from '#src/http/network.ts'
import { retryLater } from '#src/lib/app-error.ts'
import { SECOND } from '#src/lib/duration.ts'
import { runningExecutable } from '#src/lib/program.ts'
import { SamlError } from '#src/protocol/saml/error.ts'
import type { JobAnswer, JobMessage } from '#src/protocol/saml/jobs.ts'

/**
 * Milliseconds between two checks of the worker. The number of checks during a job measures the time of the
 * job. No checks run while the event loop stalls, so a stall does not use up the job's time.
 */
const CHECK_INTERVAL = 50
/**
 * Milliseconds after which the worker is killed: `MAX_WORK` of CPU time or `MAX_WAIT` of any time for a
 * message, `MAX_START` for its start. On a busy machine the worker waits for the CPU, and the wait alone does
 * not make a message too costly.
 */
const MAX_WORK = SECOND
const MAX_WAIT = 5 * SECOND
const MAX_START = 10 * SECOND
/** Maximum resident memory of the worker in bytes: five times its size after a million messages. */
const MAX_MEMORY = 512 * 1024 * 1024
/**
 * Maximum numbers of waiting messages: in total, of one organization, and of one network in an organization.
 * An organization can fill a quarter of the queue. A network can fill half of its organization's share.
 */
const MAX_WAITING = 256
const ORGANIZATION_SHARE = 64
const NETWORK_SHARE = 32

interface Job extends JobMessage {
  readonly network: string | undefined
  resolve(result: never): void
  reject(error: Error): void
}

// The worker is a separate file in the sources and in the testing package. The executable has a command that
// runs the worker.
const entry = ['ts', 'js'].map(type => join(import.meta.dir, `xml-worker.${type}`)).find(existsSync)

/** Matches the fields `utime` and `stime` of `/proc/PID/stat`, in hundredths of a second. */
const CPU_TIME = /.*\) \S(?: -?\d+){10} (\d+) (\d+) /

/**
 * Returns the resident memory of a process in bytes, and its CPU time in milliseconds. Returns undefined when
 * they cannot be read. On systems other than Linux, only the limits of protocol/saml/scan.ts bound the
 * memory, and all time counts as work.
 */
const usageOf = (pid: number): { memory: number; cpu: number } | undefined => {
  if (process.platform !== 'linux') return undefined
  const read = (name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8')
  try {
    const [, kilobytes = 0] = /^VmRSS:\s+(\d+) kB/m.exec(read('status')) ?? []
    const [, user = 0, system = 0] = CPU_TIME.exec(read('stat')) ?? []
    return { memory: Number(kilobytes) * 1024, cpu: (Number(user) + Number(system)) * 10 }
  } catch {
    return undefined
  }
}

const tooCostly = (detail: string): Error => new SamlError('too_costly', detail)
const unavailable = (cause?: unknown) => {
  const error = retryLater(
    'temporarily_unavailable',
    'Gatehouse cannot read SAML documents at present.',
    2 * SECOND,
  )
  error.cause = cause
  return error
}

/** Opens a queue of jobs. Organizations take turns. */
const openQueue = () => {
  const waiting = new Map<string, Job[]>()
  let size = 0
  return {
    isEmpty: () => size === 0,
    check: (organization_id: string, network: string | undefined): void => {
      const own = waiting.get(organization_id) ?? []
      const beside = network ? own.filter(job => job.network === network).length : 0
      if (size >= MAX_WAITING || own.length >= ORGANIZATION_SHARE || beside >= NETWORK_SHARE)
        throw unavailable()
    },
    add: (organization_id: string, job: Job): void => {
      waiting.set(organization_id, [...(waiting.get(organization_id) ?? []), job])
      size++
    },
    take: (): Job | undefined => {
      const [turn] = waiting
      if (!turn) return undefined
      const [organization_id, [job, ...others]] = turn
      waiting.delete(organization_id)
      if (others.length > 0) waiting.set(organization_id, others)
      size--
      return job
    },
    clear: (): Job[] => {
      const jobs = [...waiting.values()].flat()
      waiting.clear()
      size = 0
      return jobs
    },
  }
}

type Worker = Subprocess<'ignore', 'ignore', 'ignore'>

/** Costs of a job so far: milliseconds of any time and of CPU time, and the memory of the worker in bytes. */
interface Costs {
  waited: number
  worked: number
  memory: number
}

/** Returns the limit that the costs exceed. */
const limitOver = ({ waited, worked, memory }: Costs, isReady: boolean): string | undefined => {
  if (memory > MAX_MEMORY) return 'memory'
  if (!isReady) return waited >= MAX_START ? 'ten seconds of a start' : undefined
  if (worked >= MAX_WORK) return 'a second of work'
  return waited >= MAX_WAIT ? 'five seconds of waiting' : undefined
}

/**
 * Calls `check` periodically while the worker has a job, with the costs of the job. The timer keeps this
 * process alive.
 */
const openWatch = (check: (costs: Costs) => void) => {
  let checks = 0
  /** CPU time of the worker at the first check of its job. */
  let before = 0
  let timer: Timer | undefined
  const look = (worker: Worker | undefined): void => {
    checks++
    const waited = checks * CHECK_INTERVAL
    const usage = worker && usageOf(worker.pid)
    if (checks === 1) before = usage?.cpu ?? 0
    const worked = usage ? Math.min(usage.cpu - before, waited) : waited
    check({ waited, worked, memory: usage?.memory ?? 0 })
  }
  return {
    watch: (worker: Worker | undefined): void => {
      checks = 0
      worker?.ref()
      timer ??= setInterval(look, CHECK_INTERVAL, worker)
    },
    rest: (worker: Worker | undefined): void => {
      clearInterval(timer)
      timer = undefined
      worker?.unref()
    },
  }
}

const finish = (job: Job, message: JobAnswer): void => {
  if ('result' in message) job.resolve(message.result as never)
  else
    job.reject('reason' in message ? new SamlError(message.reason, message.detail) : new Error(message.fault))
}

/**
 * Reads XML from other parties in a separate process. The first message starts the process. The process is
 * killed when it works on one message for a second, has not read it after five seconds, or uses too much
 * memory. The next message starts another process. A thread is not enough: JavaScriptCore cannot stop a
 * thread that is inside a regular expression. Organizations take turns. Each organization has a share of the
 * queue. Each network has a part of the share of its organization.
 */
export const openXmlReader = (command?: string[]): XmlReader & { stop(): void } => {
  const queue = openQueue()
  let worker: Worker | undefined
  let isReady = false
  let current: Job | undefined

  const start = (): void => {
    isReady = false
    worker = Bun.spawn(command ?? [runningExecutable(), entry ?? 'xml-worker'], {
      // The worker parses text from strangers, so it must not get the secrets in the environment.
      env: {},
      stdio: ['ignore', 'ignore', 'ignore'],
      ipc: (message, from) => from === worker && heard(message),
      onExit: from => {
        if (from === worker) lost('the worker ended')
      },
    })
    watch(worker)
  }

  const { watch, rest } = openWatch(costs => {
    const limit = limitOver(costs, isReady)
    if (limit) lost(limit)
  })

  const heard = (message: JobAnswer | 'ready'): void => {
    rest(worker)
    if (message === 'ready') isReady = true
    else if (current) {
      finish(current, message)
      current = undefined
    }
    next()
  }

  /** Kills the worker and refuses its message. Refuses all messages if the worker did not start. */
  const lost = (detail: string): void => {
    rest(worker)
    worker?.kill('SIGKILL')
    worker = undefined
    current?.reject(tooCostly(detail))
    current = undefined
    for (const job of isReady ? [] : queue.clear())
      job.reject(unavailable(new Error('the XML worker does not start')))
    next()
  }

  const next = (): void => {
    if (current || queue.isEmpty()) return
    try {
      if (!worker) start()
      current = isReady ? queue.take() : undefined
      if (!current) return
      const { kind, input } = current
      watch(worker)
      worker?.send({ kind, input })
    } catch {
      lost('the worker ended')
    }
  }

  const stop = (): void => {
    process.off('exit', stop)
    worker?.kill('SIGKILL')
  }
  process.once('exit', stop)

  return {
    check: (organization_id, ip_address) => queue.check(organization_id, ip_address && networkOf(ip_address)),
    stop,
    run: (organization_id, kind, input, ip_address) =>
      new Promise((resolve, reject) => {
        const network = ip_address && networkOf(ip_address)
        queue.check(organization_id, network)
        queue.add(organization_id, { kind, input, network, resolve, reject })
        next()
      }),
  }
}
