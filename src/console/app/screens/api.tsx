import { useState } from 'preact/hooks'
import type { ApiAnswer } from '#src/directory/apis/schema.ts'
import { AsCode } from '../as-code.tsx'
import { Adder, Entries, Picker, RemoveButton } from '../collections.tsx'
import { Deletion } from '../deletion.tsx'
import { DurationField } from '../duration-field.tsx'
import { Check, Choice, Field, Refusals } from '../fields.tsx'
import { EditForm, useEdit } from '../forms.tsx'
import { type Loaded, useObject } from '../hooks.ts'
import { consoleLimits } from '../limits.ts' with { type: 'macro' }
import { ForeignOrganization } from '../names.tsx'
import { type Options, useOptions } from '../options.ts'
import { Card, EventsLink, Heading, Value } from '../parts.tsx'
import { Sections } from '../sections.tsx'
import { UnloadedScreen } from '../unloaded.tsx'
import { say, words } from '../words.ts'
import type { ListedClient } from './clients.tsx'

export type Api = (typeof ApiAnswer)['_output']
type Scope = Api['scopes'][number]

const { apis: text } = words
const { signingAlgs } = consoleLimits()

/**
 * Edits the texts of a scope, one row for each language. The rows keep the order in which they were entered.
 */
const Texts = (props: { name: string; texts: Scope['texts']; onTexts(texts: Scope['texts']): void }) => {
  const [rows, setRows] = useState(() => Object.entries(props.texts).map(([tag, text]) => ({ tag, text })))
  const change = (rows: { tag: string; text: string }[]) => {
    setRows(rows)
    const given = rows.filter(({ tag, text }) => tag !== '' || text !== '')
    props.onTexts(Object.fromEntries(given.map(({ tag, text }) => [tag, text])))
  }
  return (
    <Entries
      inline
      items={rows}
      onItems={change}
      fresh={{ tag: '', text: '' }}
      add={text.addText}
      empty={text.textsNone}
      label={({ tag }) => tag || text.newText}
    >
      {(row, set, index) => (
        <div class="pair short">
          <Field
            name={`${props.name}.${index}-tag`}
            label={text.language}
            autocomplete="off"
            spellcheck={false}
            value={row.tag}
            onValue={tag => set({ tag })}
          />
          <Field
            name={`${props.name}.${row.tag}`}
            label={text.text}
            autocomplete="off"
            value={row.text}
            onValue={text => set({ text })}
          />
        </div>
      )}
    </Entries>
  )
}

const Scopes = (props: { scopes: Scope[]; roles: Options; onScopes(scopes: Scope[]): void }) => (
  <Card title={text.scopes} lead={text.scopesLead}>
    <Entries
      items={props.scopes}
      onItems={props.onScopes}
      fresh={{ name: '', texts: {}, role: null, claims: {} }}
      add={text.addScope}
      empty={text.scopesNone}
      label={({ name }) => name || text.newScope}
    >
      {({ name, role, texts }, set, index) => (
        <>
          <div class="pair">
            <Field
              name={`scopes.${index}.name`}
              label={text.scope}
              autocomplete="off"
              spellcheck={false}
              value={name}
              onValue={name => set({ name })}
            />
            <Choice
              label={text.role}
              value={role ?? ''}
              options={[
                ['', text.everyone],
                ...(role && !props.roles.all.some(([name]) => name === role)
                  ? [[role, say(text.roleOnly, { role })] as const]
                  : []),
                ...props.roles.all,
              ]}
              more={props.roles.more}
              onValue={role => set({ role: role || null })}
            />
          </div>
          <Texts name={`scopes.${index}.texts`} texts={texts} onTexts={texts => set({ texts })} />
        </>
      )}
    </Entries>
  </Card>
)

/** Edits which scopes of the API each application may request. */
const Clients = (props: { api: Api; options: Options; onClients(clients: Api['clients']): void }) => {
  const { api, options, onClients } = props
  const scopes = api.scopes.flatMap(({ name }) => name || [])
  const ids = api.clients.map(({ client_id }) => client_id)
  const nameOf = (id: string) => options.all.find(([value]) => value === id)?.[1] ?? id
  return (
    <Card title={text.clients} lead={text.clientsLead}>
      <div class="entries">
        {api.clients.length === 0 && <p class="hint">{text.clientsNone}</p>}
        {api.clients.map(({ client_id, scopes: chosen }) => (
          <fieldset key={client_id} class="entry">
            <legend class="unseen">{nameOf(client_id)}</legend>
            <div>
              <strong>{nameOf(client_id)}</strong>
              {scopes.length === 0 && <p class="hint">{text.noScopes}</p>}
              <div class="checks">
                {[...new Set([...scopes, ...chosen])].map(scope => (
                  <Check
                    key={scope}
                    label={scope}
                    checked={chosen.includes(scope)}
                    onChecked={isOn =>
                      onClients(
                        api.clients.map(each =>
                          each.client_id === client_id
                            ? {
                                client_id,
                                scopes: isOn ? [...chosen, scope] : chosen.filter(c => c !== scope),
                              }
                            : each,
                        ),
                      )
                    }
                  />
                ))}
              </div>
            </div>
            <RemoveButton
              label={nameOf(client_id)}
              onClick={() => onClients(api.clients.filter(each => each.client_id !== client_id))}
            />
          </fieldset>
        ))}
        <div class="field">
          <label for="client_id">{text.addClient}</label>
          <Adder
            name="client_id"
            taken={ids}
            options={options}
            onAdd={client_id => onClients([...api.clients, { client_id, scopes }])}
          >
            <Refusals name="clients" />
          </Adder>
        </div>
      </div>
    </Card>
  )
}

const Form = ({ api, loaded }: { api: Api; loaded: Loaded<Api> }) => {
  const path = `/apis/${api.id}`
  const edit = useEdit<Api>(path, api, loaded.etag, loaded)
  const { values, set } = edit
  const roles = useOptions<{ name: string }>('/roles', api.organization_id, ({ name }) => [
    name,
    say(text.roleOnly, { role: name }),
  ])
  const options = useOptions<ListedClient>('/clients', api.organization_id, ({ client_id, name }) => [
    client_id,
    name,
  ])
  const general = (
    <Card title={text.settings}>
      <Field
        name="name"
        label={text.name}
        hint={text.nameHint}
        value={values.name}
        onValue={name => set({ name })}
      />
      <div class="pair">
        <DurationField
          key={edit.version}
          name="access_token_ttl"
          label={text.ttl}
          hint={text.ttlHint}
          value={values.access_token_ttl}
          onValue={access_token_ttl => set({ access_token_ttl })}
        />
        <Choice
          label={text.alg}
          value={values.access_token_alg ?? ''}
          options={[['', text.algDefault], ...signingAlgs.map((alg): [string, string] => [alg, alg])]}
          onValue={alg => set({ access_token_alg: (alg || null) as Api['access_token_alg'] })}
        />
      </div>
      <Check
        label={text.dynamic}
        hint={text.dynamicHint}
        checked={values.open_to_dynamic_clients}
        onChecked={open_to_dynamic_clients => set({ open_to_dynamic_clients })}
      />
    </Card>
  )
  const applications = (
    <>
      <Clients key={edit.version} api={values} options={options} onClients={clients => set({ clients })} />
      <Card>
        <Picker
          key={edit.version}
          name="served_by"
          label={text.servedBy}
          hint={text.servedByHint}
          chosen={values.served_by}
          options={options}
          onChosen={served_by => set({ served_by })}
        />
      </Card>
    </>
  )
  return (
    <EditForm edit={edit} path={path} stored={api}>
      <Sections
        label={text.settings}
        sections={[
          { id: 'settings', label: text.settings, content: general },
          {
            id: 'scopes',
            label: text.scopes,
            content: (
              <Scopes
                key={edit.version}
                scopes={values.scopes}
                roles={roles}
                onScopes={scopes => set({ scopes })}
              />
            ),
          },
          { id: 'clients', label: text.clients, content: applications },
        ]}
      />
    </EditForm>
  )
}

/** Screen of one API. */
export const ApiScreen = ({ id }: { id: string }) => {
  const loaded = useObject<Api>(`/apis/${encodeURIComponent(id)}`)
  const back = { href: '/console/apis', label: words.nav.apis }
  const api = loaded.data
  if (!api) return <UnloadedScreen title={text.one} back={back} loaded={loaded} />
  return (
    <>
      <Heading
        title={api.name}
        back={back}
        lead={
          <>
            <Value text={api.identifier} />
            <ForeignOrganization id={api.organization_id} />
          </>
        }
      >
        <EventsLink of={api.id} />
      </Heading>
      <div class="narrow stack">
        <Form api={api} loaded={loaded} />
        <AsCode section="apis" path={`/apis/${api.id}`} object={api} />
        <Deletion
          name={api.name}
          typed={api.name}
          text={text.deleteText}
          path={`/apis/${api.id}`}
          list="/console/apis"
        />
      </div>
    </>
  )
}
