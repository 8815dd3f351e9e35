import type { OrganizationAnswer } from '#src/directory/organizations/schema.ts'
import { DurationField } from '../duration-field.tsx'
import { Check, Choice, Field } from '../fields.tsx'
import { Card } from '../parts.tsx'
import { words } from '../words.ts'

type Settings = (typeof OrganizationAnswer)['_output']['settings']

/** Edits the settings for logins. */
export const LoginSettings = (props: { settings: Settings; onChange(change: Partial<Settings>): void }) => {
  const { settings, onChange } = props
  return (
    <Card title={words.organization.logins}>
      <Check
        label={words.organization.mfa}
        hint={words.organization.mfaHint}
        checked={settings.mfa_required ?? false}
        onChecked={mfa_required => onChange({ mfa_required })}
      />
      <Check
        label={words.organization.passkey}
        hint={words.organization.passkeyHint}
        checked={settings.passkey_required ?? false}
        onChecked={passkey_required => onChange({ passkey_required })}
      />
      <Check
        label={words.organization.stepUp}
        hint={words.organization.stepUpHint}
        checked={settings.step_up === 'all'}
        onChecked={isOn => onChange({ step_up: isOn ? 'all' : null })}
      />
      <Check
        label={words.organization.selfDelete}
        checked={settings.self_deletion ?? false}
        onChecked={self_deletion => onChange({ self_deletion })}
      />
      <div class="pair">
        <Choice
          label={words.organization.emailCode}
          value={settings.email_code ?? 'off'}
          options={[
            ['off', words.organization.emailCodeOff],
            ['users', words.organization.emailCodeUsers],
            ['all', words.organization.emailCodeAll],
          ]}
          onValue={email_code => onChange({ email_code: email_code as Settings['email_code'] })}
        />
        <DurationField
          name="settings.remember_browser_days"
          label={words.organization.rememberDays}
          hint={words.organization.rememberDaysHint}
          unit="d"
          value={settings.remember_browser_days}
          onValue={remember_browser_days => onChange({ remember_browser_days })}
        />
        <Field
          name="settings.session_ttl"
          label={words.organization.ttl}
          hint={words.organization.ttlHint}
          autocomplete="off"
          spellcheck={false}
          value={settings.session_ttl ?? ''}
          onValue={value => onChange({ session_ttl: value === '' ? null : value })}
        />
        <Choice
          label={words.organization.consoleAcr}
          value={settings.console_acr ?? ''}
          options={[
            ['', words.organization.consoleAny],
            ['2', words.organization.consoleTwo],
            ['phr', words.organization.consolePasskey],
          ]}
          name="settings.console_acr"
          onValue={value => onChange({ console_acr: (value || null) as '2' | 'phr' | null })}
        />
        <Choice
          label={words.organization.passwords}
          value={settings.password_policy?.preset ?? ''}
          options={[
            ['', words.organization.usual],
            ['nist', words.organization.nist],
          ]}
          onValue={preset =>
            // The organization may have rules of its own beside the preset.
            onChange({
              password_policy: { ...settings.password_policy, preset: preset === 'nist' ? preset : null },
            })
          }
        />
      </div>
    </Card>
  )
}
