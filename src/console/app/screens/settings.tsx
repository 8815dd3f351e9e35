import { CodeCard } from '../as-code.tsx'
import { curlOf } from '../curl.ts'
import { Field } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { AsCurl, Card, Heading, MailPlace, Value } from '../parts.tsx'
import { issuer, sendsMail } from '../session.ts'
import { UnloadedCard } from '../unloaded.tsx'
import { say, words } from '../words.ts'
import { Backups, Keys } from './operations.tsx'

/** The settings that can change while the server runs. */
interface ServerSettings {
  key_rotation_interval: string
  backup_interval: string | null
  backup_keep: number
}

const Form = ({ stored, loaded }: { stored: ServerSettings; loaded: Loaded<ServerSettings> }) => {
  const edit = useEdit<ServerSettings>('/settings', stored, loaded.etag, loaded)
  const { values, set } = edit
  return (
    <EditForm edit={edit} path="/settings" stored={stored}>
      <Card title={words.settings.keys} lead={words.settings.keysLead}>
        <Field
          name="key_rotation_interval"
          label={words.settings.rotation}
          hint={say(words.common.range, { from: '1d', to: '365d' })}
          value={values.key_rotation_interval}
          onValue={key_rotation_interval => set({ key_rotation_interval })}
        />
      </Card>
      <Card title={words.settings.backups} lead={words.settings.backupsLead}>
        <div class="pair">
          <Field
            name="backup_interval"
            label={words.settings.interval}
            hint={words.settings.intervalHint}
            value={values.backup_interval ?? ''}
            onValue={text => set({ backup_interval: text === '' ? null : text })}
          />
          <Field
            name="backup_keep"
            label={words.settings.kept}
            value={String(values.backup_keep)}
            onValue={text => set({ backup_keep: Number(text) })}
          />
        </div>
      </Card>
    </EditForm>
  )
}

const addresses = [
  [words.providers.issuer, ''],
  [words.settings.discovery, '/.well-known/openid-configuration'],
  [words.settings.keySet, '/.well-known/jwks.json'],
  [words.settings.reference, '/api/v1/docs'],
] as const

/** Screen of the server's settings. */
export const SettingsScreen = () => {
  const loaded = useObject<ServerSettings>('/settings')
  return (
    <>
      <Heading title={words.nav.settings} lead={words.settings.lead} />
      <div class="columns">
        <div class="stack">
          {loaded.data ? <Form stored={loaded.data} loaded={loaded} /> : <UnloadedCard loaded={loaded} />}
          <Card title={words.health.names.mail}>
            <p>{sendsMail ? words.mail.on : words.mail.off}</p>
            <p class="hint">
              <MailPlace />
            </p>
          </Card>
          <Card title={words.settings.addresses}>
            <dl class="facts">
              {addresses.map(([name, path]) => (
                <div key={name}>
                  <dt>{name === words.settings.reference ? <a href={path}>{name}</a> : name}</dt>
                  <dd>
                    <Value text={`${issuer}${path}`} />
                  </dd>
                </div>
              ))}
            </dl>
          </Card>
          <CodeCard>
            <AsCurl text={curlOf('GET', '/settings')} />
          </CodeCard>
        </div>
        <div class="stack">
          <Keys />
          <Backups />
        </div>
      </div>
    </>
  )
}
