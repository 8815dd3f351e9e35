import type { KeyObject } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { hashNameOf, type SigningAlg } from '#src/protocol/oidc/signing-algs.ts'
import { signWith } from './signature.ts'
import type { SigningJob, SigningResult } from './signing-worker.ts'
import { workerSource } from './worker-source.ts' with { type: 'macro' }

/**
 * Maximum number of thread starts in a process, so that a thread that fails again and again is not restarted
 * forever.
 */
const MAX_STARTS = 5

interface Pending {
  resolve(signature: string): void
  /** Signs on the calling thread. */
  here(): string
}

/**
 * Signs with RSA and the larger curves on a separate thread. A signature takes 0.4 to 1.2 ms, which is too
 * long for the event loop. In the runtime's thread pool a signature would wait for password hashes. The first
 * of these signatures starts the thread. The calling thread signs while the signing thread starts and after
 * the signing thread has failed. It also signs on a machine with one core, because a second thread would only
 * compete with the event loop.
 */
export const openThread = ({ cores }: { cores: number }) => {
  const pending = new Map<number, Pending>()
  let worker: Worker | undefined
  let ready = false
  /** The keys that the thread has, by id. */
  let sent = new Map<string, KeyObject>()
  let jobs = 0
  let starts = 0

  const start = (): void => {
    starts++
    const url = URL.createObjectURL(new Blob([workerSource()], { type: 'application/typescript' }))
    worker = new Worker(url, { ref: false })
    worker.onmessage = ({ data }: MessageEvent<SigningResult | 'ready'>) => {
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
    sent = new Map()
    const waiting = [...pending.values()]
    pending.clear()
    for (const { resolve, here } of waiting) resolve(here())
  }

  const post = (key: KeyObject, job: SigningJob): void => {
    const pkcs8 = sent.get(job.key_id) === key ? undefined : key.export({ format: 'der', type: 'pkcs8' })
    sent.set(job.key_id, key)
    worker?.postMessage(pkcs8 ? { ...job, pkcs8 } : job)
  }

  const sign = (key_id: string, key: KeyObject, alg: SigningAlg, input: string): string | Promise<string> => {
    const here = () => signWith(key, alg, input)
    if (!ready) {
      if (!worker && starts < MAX_STARTS && cores > 1) start()
      return here()
    }
    return new Promise(resolve => {
      const id = ++jobs
      pending.set(id, { resolve, here })
      post(key, { id, key_id, hash: hashNameOf(alg), input })
    })
  }

  return { sign, isReady: () => ready, stop: () => worker?.terminate() }
}

/** The signing thread of the process. */
export const signingThread = openThread({ cores: availableParallelism() })
