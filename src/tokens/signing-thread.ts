import type { KeyObject } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { signWith } from './signature.ts'
import type { Done, Job } from './signing-worker.ts'
import { workerSource } from './worker-source.ts' with { type: 'macro' }

/** A thread that keeps dying is not tried for ever. */
const MOST_STARTS = 5

interface Pending {
  resolve(signature: string): void
  /** Signs on this thread instead. */
  here(): string
}

/**
 * RSA and the larger curves take 0.4 to 1.2 ms a signature, which the event loop should not wait for, and the runtime's
 * own pool queues them behind password hashes: they have a thread of their own. One per process, started by the first
 * such signature; while it starts, if it dies, and on a machine with one core, signatures are made on the spot.
 */
export const openThread = ({ cores }: { cores: number }) => {
  const pending = new Map<number, Pending>()
  let worker: Worker | undefined
  let ready = false
  let sent = new Set<string>()
  let jobs = 0
  let starts = 0

  const start = (): void => {
    starts++
    const url = URL.createObjectURL(new Blob([workerSource()], { type: 'application/typescript' }))
    worker = new Worker(url, { ref: false })
    worker.onmessage = ({ data }: MessageEvent<Done | 'ready'>) => {
      if (data === 'ready') {
        ready = true
        return
      }
      pending.get(data.id)?.resolve(data.signature)
      pending.delete(data.id)
    }
    worker.onerror = event => event.preventDefault()
    worker.addEventListener('close', lost)
  }

  const lost = (): void => {
    worker = undefined
    ready = false
    sent = new Set()
    const waiting = [...pending.values()]
    pending.clear()
    for (const { resolve, here } of waiting) resolve(here())
  }

  const post = (key: KeyObject, job: Job): void => {
    const pkcs8 = sent.has(job.key_id) ? undefined : key.export({ format: 'der', type: 'pkcs8' })
    sent.add(job.key_id)
    worker?.postMessage(pkcs8 ? { ...job, pkcs8 } : job)
  }

  const sign = (key_id: string, key: KeyObject, alg: SigningAlg, input: string): string | Promise<string> => {
    const here = () => signWith(key, alg, input)
    if (!ready) {
      if (!worker && starts < MOST_STARTS && cores > 1) start()
      return here()
    }
    return new Promise(resolve => {
      const id = ++jobs
      pending.set(id, { resolve, here })
      post(key, { id, key_id, hash: `sha${alg.slice(2)}`, input })
    })
  }

  return { sign, isReady: () => ready, stop: () => worker?.terminate() }
}

export const signingThread = openThread({ cores: availableParallelism() })
