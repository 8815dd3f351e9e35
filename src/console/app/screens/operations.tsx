import { useEffect, useState } from 'preact/hooks'
import { useAction } from '../action.ts'
import { ConfirmCall } from '../confirm-call.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { Rows } from '../list.tsx'
import { may } from '../me.ts'
import { Badge, Card, Empty, Refused, When } from '../parts.tsx'
import { bytes, fullDate, say, words } from '../words.ts'

interface SigningKey {
  kid: string
  alg: string
  state: 'next' | 'signing' | 'retired'
  signs_from: string
  published_until: string | null
}

const tones = { next: 'plain', signing: 'good', retired: 'plain' } as const

const Row = ({ of }: { of: SigningKey }) => {
  const text = words.keys
  const { kid, alg, state, signs_from, published_until } = of
  return (
    <li class="row">
      <span>
        <strong>{alg}</strong>
        <code class="hint">{kid}</code>
        <span class="hint">
          {state === 'next' || !published_until
            ? say(text.from, { time: fullDate(signs_from) })
            : say(text.until, { time: fullDate(published_until) })}
        </span>
      </span>
      <Badge tone={tones[state]}>{text.states[state]}</Badge>
    </li>
  )
}

/** Shows the signing keys with their states, and the button that rotates them. */
export const Keys = () => {
  const text = words.keys
  const loaded = useObject<{ data: SigningKey[] }>('/keys')
  const [isAsked, setAsked] = useState(false)
  const keys = loaded.data?.data
  return (
    <Card
      title={text.title}
      flush
      aside={
        keys &&
        may('settings:update') && (
          <button type="button" onClick={() => setAsked(true)}>
            {text.rotate}
          </button>
        )
      }
    >
      <Rows list={loaded} items={keys} row={key => <Row key={key.kid} of={key} />} />
      {isAsked && (
        <ConfirmCall
          title={text.rotateTitle}
          text={text.rotateText}
          action={text.rotate}
          method="POST"
          path="/keys/rotate"
          done={text.rotated}
          onDone={() => {
            setAsked(false)
            loaded.reload()
          }}
          onClose={() => setAsked(false)}
        />
      )}
    </Card>
  )
}

interface Backups {
  running: boolean
  data: { name: string; bytes: number; created_at: string }[]
}

/** Reads the list again every two seconds while a backup runs. */
const useProgress = (loaded: Loaded<Backups>): void => {
  useEffect(() => {
    if (!loaded.data?.running) return
    const timer = setTimeout(loaded.reload, 2_000)
    return () => clearTimeout(timer)
  }, [loaded.data])
}

/**
 * Starts and lists backups on the server. The content of a backup is never sent to the browser. Otherwise a
 * stolen access token would be enough to copy the database.
 */
export const Backups = () => {
  const text = words.backups
  const loaded = useObject<Backups>('/backups')
  const start = useAction(loaded.reload)
  useProgress(loaded)
  const backups = loaded.data
  return (
    <Card
      title={text.title}
      lead={text.lead}
      flush
      aside={
        backups &&
        may('settings:update') && (
          <button
            type="button"
            disabled={backups.running || start.dialog.isBusy}
            onClick={() => void start.run('POST', '/backups', text.started)}
          >
            {backups.running ? text.running : text.start}
          </button>
        )
      }
    >
      <Refused problem={start.problem} />
      <Rows
        list={loaded}
        items={backups?.data}
        empty={
          <Empty title={text.none} icon="settings">
            {text.noneText}
          </Empty>
        }
        row={({ name, bytes: size, created_at }) => (
          <li key={name} class="row">
            <span>
              <strong>{fullDate(created_at)}</strong>
              <code class="hint">{name}</code>
            </span>
            <span class="muted">{bytes(size)}</span>
            <When time={created_at} />
          </li>
        )}
      />
    </Card>
  )
}
