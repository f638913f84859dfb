import type { AuditRecord } from '../year/audit-record.ts'
import { single } from './catalogue.ts'
import type { MetricFamily } from './exposition.ts'

/** How the archive was found last, as metrics; none while there is no record. */
export function auditMetrics(audit: AuditRecord | null): MetricFamily[] {
  if (audit === null) return []
  return [
    single('dash_audit_timestamp_seconds', audit.endedAt / 1000),
    single('dash_audit_ok', Number(audit.ok)),
    single('dash_audit_complete', Number(audit.complete)),
    single('dash_audit_whole', Number(audit.whole)),
    single('dash_audit_damage_findings', audit.damage),
    single('dash_audit_objects', audit.objects),
    single('dash_audit_bytes', audit.bytes),
  ]
}
