import { directCall } from './direct-call.ts'
import { reachDirectly } from './reach-directly.ts'

/**
 * Milliseconds after which `run` restores the normal policy of the just-in-time compiler. During a start the
 * compiler waits eight times longer than usual before it compiles code (.ci/build.ts), because a start runs
 * most functions only a few times.
 */
const START = 300

/**
 * Escapes control characters, so that a terminal shows them and does not execute them. A message may quote a
 * file that a stranger wrote, such as a seed or a backup.
 */
const shownByTerminal = (text: string): string =>
  text.replace(/[\p{Cc}--[\t\n]]/gv, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/**
 * Runs a command. Returns one of the exit codes that `gatehouse help` lists. For `exec` it returns the exit
 * code of the command that `exec` has run.
 */
export const run = async (args: string[]): Promise<number> => {
  setTimeout(() => Bun.unsafe.setJITPolicy(1), START).unref()
  reachDirectly('localhost,127.0.0.1,[::1]')
  const call = directCall(args) ?? (await import('./program.ts')).parsedCall(args)
  try {
    return (await call.run()) ?? Number(process.exitCode ?? 0)
  } catch (error) {
    const { withDetails } = await import('./error-details.ts')
    const { message, exit_code = 1 } = (await withDetails(error, call.options())) as Error & {
      exit_code?: number
    }
    console.error(`gatehouse: ${shownByTerminal(message)}`)
    if (exit_code === 1 && process.env.GATEHOUSE_LOG_LEVEL === 'debug') console.error(error)
    return exit_code
  }
}
