/**
 * Raises the versions of datasets and tags the commit, with `lumos version update`.
 *
 * configPath     the configuration file; by default lumos.yaml or LUMOS_CONFIG
 * autoIncrement  raise the versions of datasets whose schema changed since their last version
 * createGitTag   create an annotated tag if versions changed since the last one
 * tagPrefix      the text before the cloud version in the name of the tag; by default v
 * ref            the commit to tag; by default the one that was checked out (GIT_COMMIT), else HEAD
 *
 * Returns success, cloudVersion and schemaVersion of the run, gitTag (null if nothing changed or no
 * tag was requested), changesDetected (datasets whose versions changed), and datasets.
 */
def call(Map config = [:]) {
    List arguments = ['version', 'update']
    if (config.autoIncrement != false) {
        arguments += ['--auto-increment']
    }
    if (config.createGitTag) {
        // Jenkins checks out a detached HEAD.
        String ref = config.ref ?: env.GIT_COMMIT ?: 'HEAD'
        arguments += ['--create-git-tag', '--tag-prefix', config.tagPrefix ?: 'v', '--ref', ref]
    }
    Map report = lumosCommand(arguments, config.configPath as String)
    return [
        success: true,
        cloudVersion: report.cloud_version,
        schemaVersion: report.schema_version,
        gitTag: report.git_tag,
        changesDetected: report.changes_detected,
        datasets: report.datasets,
    ]
}
