import { SamlError } from '#src/protocol/saml/error.ts'
import {
  type JobAnswer,
  type JobInput,
  type JobKind,
  type JobMessage,
  jobs,
} from '#src/protocol/saml/jobs.ts'

/** Runs one job. This code runs in the process that xml-reader.ts starts. */
const answer = (kind: JobKind, input: JobInput<JobKind>): JobAnswer => {
  try {
    return { result: (jobs[kind] as (input: JobInput<JobKind>) => unknown)(input) }
  } catch (error) {
    return error instanceof SamlError
      ? { reason: error.reason, detail: error.message }
      : { fault: String(error) }
  }
}

process.on('message', ({ kind, input }: JobMessage) => process.send?.(answer(kind, input)))
process.on('disconnect', () => process.exit())
process.send?.('ready')
