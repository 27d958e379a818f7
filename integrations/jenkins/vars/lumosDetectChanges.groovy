/**
 * Detects schema changes and returns how many there are.
 *
 * With `base`, a revision, it judges the changes of the branch with `lumos gate`; nothing is
 * recorded. Otherwise it scans `sources`, by default those of the configuration, with
 * `lumos ingest`, which records and versions what changed.
 *
 * configPath      the configuration file; by default lumos.yaml or LUMOS_CONFIG
 * sources         folders, files or addresses such as s3://my-bucket/data/
 * base            the target of the change, such as origin/main
 * failOnBreaking  fail the build if a change is breaking
 *
 * Returns count (changes of fields and deleted datasets; with base, findings), changesDetected (the
 * same), breaking, undetermined, newDatasets, and the report of the command.
 */
def call(Map config = [:]) {
    Map found = config.base ? judged(config) : scanned(config)
    if (config.failOnBreaking && found.breaking > 0) {
        error("Lumos found ${found.breaking} breaking schema change(s).")
    }
    return found
}

private Map judged(Map config) {
    List arguments = ['gate', '--base', config.base, '--warn-only']
    Map report = lumosCommand(arguments, config.configPath as String)
    int count = report.findings.size()
    return [
        count: count,
        changesDetected: count,
        breaking: report.summary.breaking,
        undetermined: report.summary.undetermined,
        newDatasets: 0,
        report: report,
    ]
}

private Map scanned(Map config) {
    List sources = (config.sources ?: []) as List
    Map report = lumosCommand(['ingest'] + sources, config.configPath as String)
    int count = report.missing.size()
    for (dataset in report.datasets) {
        count += dataset.changes.size()
    }
    return [
        count: count,
        changesDetected: count,
        breaking: report.summary.breaking_changes,
        undetermined: report.summary.undetermined_changes,
        newDatasets: report.summary.datasets_new,
        report: report,
    ]
}
